# SPDX-License-Identifier: Apache-2.0
"""The programs of the documentation, as they stand there, and the example, whose losses are the same with any number of
ranks.
"""

import json
import os
import sys

import jobs
import pytest
from harness.case import free_port

sys.path.insert(0, os.path.join(jobs.ROOT, "tests", "doors"))

import programs

PAGE = "docs/doors/jax.md"


@pytest.mark.parametrize(
    "name,size,expected", [("jax", 2, ["rank 0 of 2", "rank 1 of 2"]), ("jax-distributed", 2, ["[6. 6. 6.]"] * 2)]
)
def test_programs(name, size, expected, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(programs.programs(PAGE)[name].replace(":9955", f":{free_port()}"))
    output = jobs.run(size, str(path))
    for text in expected:
        assert output.count(text) >= expected.count(text), output


def test_every_program_is_run():
    assert set(programs.programs(PAGE)) == {"jax", "jax-distributed"}
    assert all(len([line for line in text.splitlines() if line]) <= 10 for text in programs.programs(PAGE).values())


def test_digits_learns_the_same_with_any_number_of_ranks(tmp_path):
    losses = {}
    for size in (1, 2, 4):
        path = tmp_path / f"{size}.json"
        example = os.path.join(jobs.ROOT, "examples", "jax_digits.py")
        jobs.run(size, example, "--epochs", "2", "--rate", "0.1", "--save", path)
        losses[size] = json.loads(path.read_text())
    assert losses[1][-1] < 0.8 * losses[1][0], losses
    for size in (2, 4):
        assert losses[size] == pytest.approx(losses[1], rel=1e-3), losses
