# SPDX-License-Identifier: Apache-2.0
"""Tests of the torch backend, on the ccom package that is installed beside torch.

    pytest tests/torch                                 all cases
    CCOM_TEST_LONG=1 pytest tests/torch                more kills and draws, and tensors beyond 2 GiB
    CCOM_TEST_SEED=7 pytest tests/torch                other draws
    CCOM_TEST_BACKENDS=gloo pytest tests/torch         the tests themselves, without ccom

Tests that run on both backends are checked with Gloo's results, or check Gloo too: they expect what torch promises.
"""
import importlib.util
import os
import sys

import pytest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]

from launch import LONG, SEED  # noqa: E402

BACKENDS = os.environ.get("CCOM_TEST_BACKENDS", "gloo,ccom").split(",")
# What scripts/test runs each time.
SMOKE = ("test_collectives[ccom-hosts-4-",
         "test_two_ranks_learn_what_gloo_does[ddp_digits]", "test_programs[README.md-",
         "test_survivors_name_the_rank_that_was_killed[all_reduce-1000-2-two hosts]", "test_ddp_goes_on[two hosts]")


def has_ccom():
    return "ccom" in BACKENDS and importlib.util.find_spec("ccom") is not None


def pytest_report_header():
    return f"CCOM_TEST_SEED={SEED}"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only with CCOM_TEST_LONG=1")
    config.addinivalue_line("markers", "ccom: needs the ccom package")
    config.addinivalue_line("markers", "smoke: runs each time, first")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith(SMOKE):
            item.add_marker(pytest.mark.smoke)
        backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
        if (item.get_closest_marker("ccom") or backend == "ccom") and not has_ccom():
            item.add_marker(pytest.mark.skip(reason="ccom is not installed, or not asked for"))
        if backend == "gloo" and "gloo" not in BACKENDS:
            item.add_marker(pytest.mark.skip(reason="gloo is not asked for"))
        if item.get_closest_marker("long") and not LONG:
            item.add_marker(pytest.mark.skip(reason="only with CCOM_TEST_LONG=1"))
