# SPDX-License-Identifier: Apache-2.0
"""torchrun as clusters start it: under Slurm itself, and by the manifests of examples/clusters."""
import os
import subprocess

import launch
import pytest

pytestmark = pytest.mark.ccom
BUILD = os.path.join(launch.ROOT, "build", "release")
PROGRAMS = [os.path.join(BUILD, name) for name in (
    "bench/ccom-bench", "tools/doctor/ccom-doctor", "examples/allreduce_c", "examples/survivors_c")]
CASES = {"slurm": ["slurm_test.py", *PROGRAMS, "Slurm.test_script_for_torchrun"],
         **{name: ["played_test.py", BUILD, BUILD, f"PlayedTorch.test_{name}"]
            for name in ("trainer", "pytorchjob", "volcano_with_etcd")}}


@pytest.mark.parametrize("case", CASES)
def test_clusters(case):
    program, *arguments = CASES[case]
    command = ["/usr/bin/python3", os.path.join(launch.ROOT, "tests", "clusters", program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    said = done.stdout + done.stderr
    if done.returncode == 77 or "skipped=" in said:
        pytest.skip(said.strip())
    assert done.returncode == 0, said
