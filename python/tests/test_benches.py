# SPDX-License-Identifier: MPL-2.0
import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parents[2] / "benches"


def test_benches_find_the_time_of_each_frame_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    race: Any = importlib.import_module("race")
    pipeline = "videotestsrc num-buffers=40 ! facetrack engine=scripted profile-interval=1 ! fakesink"
    command = ["gst-launch-1.0", "-q", *pipeline.split()]
    timing = race.time_frames(race.Program("scripted", command, race.ONE_CORE, race.PROFILE, race.profiled_ms))
    assert len(timing.intervals) >= 40 - 1 - race.WARM_UP_FRAMES
    assert timing.engine >= 0
