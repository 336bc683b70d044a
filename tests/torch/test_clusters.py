# SPDX-License-Identifier: Apache-2.0
"""torchrun as clusters start it: under Slurm itself, and by the manifests of examples/clusters."""
import subprocess

import launch
import pytest

pytestmark = pytest.mark.ccom
CASES = {"slurm": ["slurm_test.py", "Slurm.test_script_for_torchrun"],
         **{name: ["played_test.py", f"PlayedTorch.test_{name}"]
            for name in ("trainer", "pytorchjob", "volcano_with_etcd")}}


@pytest.mark.parametrize("case", CASES)
def test_clusters(case):
    program, name = CASES[case]
    command = ["/usr/bin/python3", "tests/harness/case.py", f"tests/clusters/{program}", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=launch.ROOT)
    said = done.stdout + done.stderr
    if done.returncode == 77:
        pytest.skip(said.strip())
    assert done.returncode == 0, said
