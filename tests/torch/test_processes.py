# SPDX-License-Identifier: Apache-2.0
"""The backend as a guest in a process: what importing it costs, what groups leave, how processes fork and end."""
import importlib.util
import os
import time

import launch
import pytest
from launch import LONG

pytestmark = pytest.mark.ccom


def footprint(autoload):
    finished = launch.ranks("footprint.py", count=1, by_exec=True,
                            environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(autoload))})
    return finished.told[0]


def test_import_is_light():
    without, beside = footprint(False), footprint(True)
    assert beside.pop("registered") and not without.pop("registered")
    assert beside == without and not beside["libraries"]


@pytest.mark.parametrize("hosts", ["one host", "two hosts"])
def test_groups_leave_nothing(hosts):
    count = 1000 if LONG else 100
    more = {"per_rank": lambda rank: {"CCOM_HOSTID": f"host-{rank}"}} if hosts == "two hosts" else {}
    finished = launch.ranks("many_groups.py", str(count), count=2, timeout=400, **more)
    told = finished.told[0]
    before, after = told["before"], told["after"]
    assert after["descriptors"] <= before["descriptors"], told
    assert after["threads"] <= before["threads"], told
    assert after["of_grpc"] <= before["of_grpc"] + 2 * os.cpu_count(), told
    assert after["mappings"] <= before["mappings"] + 20, told
    assert after["memory_kib"] <= before["memory_kib"] + 4096 + 2 * count, told


QUICK = ["nothing", "used", "pending", "pending_and_dropped", "pending_and_destroyed", "pending_with_callbacks",
         "destroyed_while_a_thread_waits", "a_model", "twice", "a_cycle_of_references", "without_atexit"]


@pytest.mark.parametrize("case", QUICK)
def test_ends_well(case):
    begin = time.monotonic()
    finished = launch.ranks("ending.py", case, count=2, timeout=60)
    assert time.monotonic() - begin < 30
    for text in finished.outputs:
        assert "terminate" not in text and "Traceback" not in text and "Fatal" not in text, text


@pytest.mark.parametrize("case", ["never_answered", "receive_never_answered"])
def test_ends_soon_with_operations_that_nobody_answers(case):
    finished = launch.ranks("ending.py", case, count=2, timeout=60)
    assert finished.seconds < 30, f"took {finished.seconds:.0f} s"
    assert "terminate" not in finished.output and "Fatal" not in finished.output, finished.output


def test_an_exception_ends_the_process_as_always():
    finished = launch.ranks("ending.py", "an_exception", count=2, timeout=60, succeeds=None)
    assert finished.codes[0] == 1 and finished.codes[1] in (0, 1), f"{finished.codes}\n{finished.output}"


def test_children_of_a_process_with_torch_make_groups():
    launch.ranks("forking.py", "before", count=1, timeout=60)


@pytest.mark.parametrize("case", ["workers", "mapped"])
def test_loaders_fork_beside_a_group(case):
    launch.ranks("forking.py", case, count=2, timeout=120)


@pytest.mark.parametrize("keep_bytes", [0, 1 << 30], ids=["keeps nothing", "keeps blocks"])
def test_forks_beside_threads_that_allocate_mapped_tensors(keep_bytes):
    launch.ranks("forking.py", "threads", str(keep_bytes), "1000" if LONG else "100", count=1,
                 timeout=300 if LONG else 60)


ORDERS = {
    "libraries first": "protobuf grpc numpy tensorboard torch group",
    "libraries last": "torch group protobuf grpc numpy tensorboard",
    "between": "numpy torch protobuf group tensorboard grpc",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("globally", ["", "YES"])
def test_other_libraries_in_any_order(order, globally):
    pytest.importorskip("tensorboard")
    names = [name for name in ORDERS[order].split() if name != "grpc" or importlib.util.find_spec("grpc")]
    launch.ranks("imports.py", *names, count=2, by_exec=True, environment={"TORCH_USE_RTLD_GLOBAL": globally})


def test_the_store_does_not_keep_the_id():
    told = launch.ranks("stored.py", count=2, timeout=60).told[0]
    assert told["values"] > 0, "the test read nothing"
    assert told["ids"] == 0
