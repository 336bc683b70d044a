# SPDX-License-Identifier: Apache-2.0
"""The collectives of jax.distributed on ccom."""

import jobs
import pytest
from harness.case import free_port


@pytest.mark.parametrize("size", [2, 4])
def test_programs_of_jax_run_on_ccom(size):
    assert jobs.run(size, "distributed.py", "plain", str(free_port())).count("all right") == size


def test_a_killed_process_is_named():
    output = jobs.run(2, "distributed.py", "killed", str(free_port()), code=None, options=("--grace", "60"))
    assert output.count("all right") == 1, output


def test_gloo_beside_it_is_as_before():
    assert jobs.run(2, "distributed.py", "gloo", str(free_port())).count("all right") == 2
