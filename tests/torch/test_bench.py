# SPDX-License-Identifier: Apache-2.0
"""bench/torch_compare runs, and says of each workload how long it took with either backend."""
import json
import os
import subprocess
import sys

import launch
import pytest

pytestmark = pytest.mark.ccom


def test_torch_compare_measures_both(tmp_path):
    program = os.path.join(launch.ROOT, "bench", "torch_compare")
    done = subprocess.run([sys.executable, program, "--smoke", "--mapped", "--json", str(tmp_path / "rows.json")],
                          env={**os.environ, **launch.ON_LOOPBACK}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert {row["what"] for row in rows} == {"allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "ddp tiny",
                                             "fsdp tiny"}
    for row in rows:
        assert row["seconds"]["gloo"] > 0 and row["seconds"]["ccom"] > 0, row
        assert "mapped" in row["seconds"] or "bytes" not in row, row
