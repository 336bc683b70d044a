# SPDX-License-Identifier: Apache-2.0
"""The programs of the front page and of the tutorial for PyTorch, as they stand there."""
import os
import sys

import launch
import pytest

sys.path.insert(0, os.path.join(launch.ROOT, "tests", "doors"))
import programs  # noqa: E402

TUTORIAL = "docs/tutorials/pytorch.md"


@pytest.mark.parametrize("page, name, printed", [
    ("README.md", "sum.py", ["[2.0, 2.0, 2.0]"]),
    (TUTORIAL, "torch", ["rank 0 of 2: [0.5, 0.5, 0.5, 0.5]", "rank 1 of 2: [0.5, 0.5, 0.5, 0.5]"]),
    (TUTORIAL, "torch-train", ["loss "]),
])
def test_programs(page, name, printed, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(programs.programs(page)[name])
    job = launch.ranks(str(path), count=2)
    for text in printed:
        assert text in job.output, job.output


def test_an_error_is_as_the_tutorial_shows_it(tmp_path):
    path = tmp_path / "differ.py"
    path.write_text(programs.programs(TUTORIAL)["torch-errors"])
    said = launch.ranks(str(path), count=2, succeeds=False).output
    for text in ("ccom all_reduce (operation 1 of group '0', rank 0 of 2): ranks made different calls",
                 "rank 0: allreduce float32 sum count 10 (call 1)", "rank 1: allreduce float32 sum count 11 (call 1)"):
        assert text in said, said


def test_every_program_is_run():
    assert set(programs.programs(TUTORIAL)) == {"torch", "torch-train", "torch-errors"}
