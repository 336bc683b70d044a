# SPDX-License-Identifier: Apache-2.0
"""The collectives of jax.distributed on ccom."""

import socket

import jobs
import pytest


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@pytest.mark.parametrize("size", [2, 4])
def test_programs_of_jax_run_on_ccom(size):
    assert jobs.run(size, "distributed.py", "plain", free_port()).count("all right") == size


def test_a_killed_process_is_named():
    output = jobs.run(2, "distributed.py", "killed", free_port(), code=None, options=("--grace", "60"))
    assert output.count("all right") == 1, output


def test_gloo_beside_it_is_as_before():
    assert jobs.run(2, "distributed.py", "gloo", free_port()).count("all right") == 2
