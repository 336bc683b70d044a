# SPDX-License-Identifier: Apache-2.0
"""Errors as JAX's and ccom's exceptions. Nothing may hang: ccom-run would end the job and report it."""

import jobs
import pytest


def test_a_killed_rank_is_named_and_the_others_go_on():
    output = jobs.run(3, "errors.py", "killed", code=None, options=("--grace", "60"))
    assert output.count("all right") == 2, output


@pytest.mark.parametrize("what", ["mismatch", "late", "wrong", "sizes"])
def test_errors_are_whole_and_have_fields(what):
    assert jobs.run(2, "errors.py", what).count("all right") == 2


def test_abort_ends_the_others_calls():
    assert jobs.run(2, "errors.py", "aborted").count("all right") == 2


@pytest.mark.parametrize("count", [10, 100_000])
def test_control_c_ends_a_wait_in_a_compiled_function(count):
    output = jobs.run(2, "errors.py", "interrupted", str(count), options=("--grace", "30"))
    assert "interrupted" in output and output.count("all right") == 1, output
