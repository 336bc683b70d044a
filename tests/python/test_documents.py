# SPDX-License-Identifier: Apache-2.0
"""Programs and cells of the documentation, as they stand there."""

import os
import sys

import pytest
from launch import run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "doors"))

import programs

PAGE = "docs/doors/python.md"
TUTORIAL = "docs/tutorials/python.md"


EXPECTED = {
    "python": lambda size, text: text.count(f"{size * (size + 1) // 2}.0") == size,
    "python-asyncio": lambda size, text: text.count("done") == size,
    "python-errors": lambda size, text: text.count("MismatchError") == size,
    "python-mapped": lambda size, text: text.count(f"{size}.0") == size,
    "python-survivors": lambda size, text: text.count("go on with") == size - 1,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_programs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(programs.programs(PAGE)[name])
    for size in (2, 4):
        output = run(size, [path], code=137 if name == "python-survivors" else 0)
        assert EXPECTED[name](size, output), output


def test_every_program_is_run():
    assert set(programs.programs(PAGE)) == set(EXPECTED)
    assert len(programs.programs(PAGE)["python"].splitlines()) <= 10


def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = programs.cells(TUTORIAL)
    assert len(parts) > 10
    path = tmp_path / "cells.py"
    path.write_text(programs.as_one_program(parts, "=== end of a cell ==="))
    printed = run(2, [path]).split("=== end of a cell ===\n")
    for number, ((text, expected), output) in enumerate(zip(parts, printed), 1):
        assert programs.is_as_expected(expected, output), f"cell {number}:\n{text}\nprints:\n{output}"
    assert len(printed) == len(parts) + 1
