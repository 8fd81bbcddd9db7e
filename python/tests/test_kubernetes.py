# SPDX-License-Identifier: MPL-2.0
"""examples/cluster/kubernetes.yaml against the schemas of Kubernetes."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

MANIFEST = Path(__file__).parents[2] / "examples/cluster/kubernetes.yaml"


@pytest.fixture
def job() -> Any:
    return yaml.safe_load(MANIFEST.read_text())


def test_the_manifest_is_valid(job: Any) -> None:
    for version in ("1.33", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(job, version, strict=True)
    job["spec"]["completion"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.33", strict=True)


def test_every_shard_has_a_pod(job: Any) -> None:
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    arguments = container["args"]
    assert arguments[arguments.index("--shard") + 1] == str(spec["completions"])
    assert arguments[arguments.index("--jobs") + 1] == container["resources"]["limits"]["cpu"]
    named = [rule["onExitCodes"]["containerName"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert set(named) == {container["name"]}
