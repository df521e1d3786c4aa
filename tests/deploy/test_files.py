"""What is shipped for running it elsewhere: as far as it can be tried without a cluster, a container or a boot.

That an image builds and starts is not tried here, and docs/operations.md says so.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from proxy.admin.api import OPEN_PATHS
from proxy.config.settings import SETTINGS
from proxy.config.values import duration

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
VARIABLES = {row.variable for row in SETTINGS}
DRAIN_S = duration(0, 3600)(next(row.default for row in SETTINGS if row.name == "drain"))
SIDECAR, DEPLOYMENT = DEPLOY / "kubernetes/sidecar.yaml", DEPLOY / "kubernetes/deployment.yaml"


def documents(path):
    return list(YAML(typ="safe").load_all(path.read_text("utf-8")))


def pod(path):
    """The pod of a file, and the container in it that is ours."""
    first = documents(path)[0]
    spec = first["spec"]["template"]["spec"] if first["kind"] == "Deployment" else first["spec"]
    (ours,) = (one for one in [*spec.get("initContainers", ()), *spec["containers"]] if "sluicegate" in one["image"])
    return spec, ours


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_of_ours_is_a_setting(path):
    assert set(re.findall(r"\bSLUICEGATE_[A-Z_]+", path.read_text("utf-8"))) <= VARIABLES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_holds_a_key_but_the_emulators(path):
    keys = re.findall(r"\b(?:sk|sg)-[A-Za-z0-9-]{6,}", path.read_text("utf-8"))
    assert set(keys) <= {"sk-emu-alpha-1"}


@pytest.mark.parametrize("path", [SIDECAR, DEPLOYMENT], ids=lambda path: path.name)
def test_a_pod_runs_without_root_and_writes_to_its_volumes_only(path):
    spec, ours = pod(path)
    said = {**spec.get("securityContext", {}), **ours["securityContext"]}
    assert (said["runAsNonRoot"], said["allowPrivilegeEscalation"], said["readOnlyRootFilesystem"]) == (
        True,
        False,
        True,
    )
    assert said["capabilities"] == {"drop": ["ALL"]}
    assert said["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    volumes = {one["name"] for one in spec["volumes"]}
    assert {one["name"] for one in ours["volumeMounts"]} <= volumes
    assert ours["resources"]["limits"]["memory"]


@pytest.mark.parametrize("path", [SIDECAR, DEPLOYMENT], ids=lambda path: path.name)
def test_a_pod_is_asked_at_the_paths_that_need_no_token_and_waits_for_the_drain(path):
    spec, ours = pod(path)
    asked = re.findall(r"/(?:healthz|readyz)", str([ours[name] for name in ours if name.endswith("Probe")]))
    assert asked
    assert set(asked) <= OPEN_PATHS
    assert spec["terminationGracePeriodSeconds"] > DRAIN_S


def test_one_ledger_has_one_process():
    said = documents(DEPLOYMENT)[0]["spec"]
    assert (said["replicas"], said["strategy"]) == (1, {"type": "Recreate"})


def test_compose_is_read_only_and_waits_for_the_drain():
    said = documents(DEPLOY / "compose.yaml")[0]
    ours = said["services"]["sluicegate"]
    assert ours["read_only"] is True
    assert ours["cap_drop"] == ["ALL"]
    assert int(ours["stop_grace_period"].removesuffix("s")) > DRAIN_S
    assert all(port.startswith("127.0.0.1:") for one in said["services"].values() for port in one.get("ports", ()))
    for one in said["services"].values():
        for volume in one.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in said["volumes"] or (DEPLOY / source).exists(), source


def test_the_image_runs_without_root_on_files_that_are_there():
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text("utf-8")
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name
            assert f"!{name.removeprefix('./')}\n" in ignored, name


def test_the_unit_is_well_formed(tmp_path):
    program = shutil.which("systemd-analyze")
    text = (DEPLOY / "sluicegate.service").read_text("utf-8")
    assert int(re.search(r"TimeoutStopSec=(\d+)", text)[1]) > DRAIN_S
    if program is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / "sluicegate.service"
    unit.write_text(text.replace("/opt/sluicegate/bin/sluicegate", "/bin/true"))
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
