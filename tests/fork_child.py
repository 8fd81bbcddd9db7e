# SPDX-License-Identifier: MPL-2.0
"""Forks while a launch line is paused with a loaded engine, and fails unless the child ends: a library with threads of its
own can keep it from ending. Usage: fork_child.py <elements>"""

import os
import select
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

# Of our choice; a child that ends takes less than a second.
TIMEOUT_MS = 20_000


def main(elements):
    Gst.init(None)
    line = f"videotestsrc num-buffers=100 ! video/x-raw,width=64,height=64 ! {elements} ! fakesink sync=true"
    pipeline = Gst.parse_launch(line)
    pipeline.set_state(Gst.State.PAUSED)
    if pipeline.get_state(Gst.CLOCK_TIME_NONE)[0] == Gst.StateChangeReturn.FAILURE:
        sys.exit("the pipeline does not start")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    ended = select.poll()
    ended.register(os.pidfd_open(child), select.POLLIN)
    if not ended.poll(TIMEOUT_MS):
        os.kill(child, 9)
        sys.exit("the child does not end")
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
