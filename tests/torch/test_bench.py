# SPDX-License-Identifier: Apache-2.0
"""The programs of bench that run torch do, and say of each workload how long it took."""
import json
import os
import re
import subprocess
import sys

import launch
import pytest

pytestmark = pytest.mark.ccom


def test_torch_compare_measures_both(tmp_path):
    program = os.path.join(launch.ROOT, "bench", "torch_compare")
    flags = ["--smoke", "--mapped", "--vllm", "--json", str(tmp_path / "rows.json")]
    done = subprocess.run([sys.executable, program, *flags],
                          env={**os.environ, **launch.ON_LOOPBACK}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["what"] for row in rows} == {"allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast",
                                             "ddp tiny",
                                             "fsdp tiny", "decode tiny x1"}
    for row in rows:
        assert row["seconds"]["gloo"] > 0 and row["seconds"]["ccom"] > 0, row
        assert "mapped" in row["seconds"] or "bytes" not in row, row
        assert "vllm" in row["seconds"] or not row["what"].startswith("decode"), row


def test_observed_measures_calls_and_steps():
    program = os.path.join(launch.ROOT, "bench", "observed")
    done = subprocess.run([sys.executable, program, "--smoke", "--sizes", "", "--python", sys.executable],
                          env={**os.environ, **launch.ON_LOOPBACK}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^DDP step +off +[0-9.]+ us +on +[0-9.]+ us +ratio [0-9.]+ ", done.stdout), done.stdout
