# SPDX-License-Identifier: Apache-2.0
"""What the calls return, their order, what transformations make of them, and what compiled functions keep of
communicators.
"""

import jobs
import pytest


@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_collective_has_numpys_results_compiled_and_not(size):
    assert jobs.run(size, "collectives.py").count("all right") == size


@pytest.mark.parametrize("size", [2, 3])
def test_derivatives_and_batches_are_those_of_the_whole_problem(size):
    assert jobs.run(size, "transformations.py").count("all right") == size


def test_independent_calls_keep_the_order_of_the_program():
    assert jobs.run(2, "order.py").count("all right") == 2


def test_in_place_and_donated_arrays_are_not_copied():
    assert jobs.run(2, "in_place.py").count("all right") == 2


def test_functions_from_the_compilation_cache_find_this_runs_communicators(tmp_path):
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    assert jobs.run(2, "cached.py", "first", environment=cache).count("all right") == 2
    assert jobs.run(2, "cached.py", "again", environment=cache).count("all right") == 2
