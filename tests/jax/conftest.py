# SPDX-License-Identifier: Apache-2.0
"""Tests of ccom.jax, on the package and the jax that scripts/install-python installs.

    pytest tests/jax        two minutes on two cores

Processes start as those of tests/python do.
"""

import importlib.util
import os
import sys

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "python"), TESTS]


def pytest_collection_modifyitems(items):
    if importlib.util.find_spec("jax") is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="jax is not installed; scripts/install-python --jax"))
