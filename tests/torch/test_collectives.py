# SPDX-License-Identifier: Apache-2.0
"""Everything public in torch.distributed against an oracle in one process: programs/checks_*.py, each check a test.

One job per backend, number of ranks and mode runs all of its checks that were selected; a test reads what its ranks
said of one. Gloo runs the same checks where it can: what it passes is what torch means.
"""
import ast
import fcntl
import json
import os
import tempfile

import launch
import pytest
import torch

BASIC = ["groups", "reduce", "move", "layout", "coalesced", "objects", "messages", "work"]


class Mode:
    def __init__(self, modules=tuple(BASIC), backend="ccom", environment=None, per_rank=lambda rank: {}, timeout=200,
                 victim=None):
        self.modules, self.backend, self.environment = modules, backend, environment or {}
        self.per_rank, self.timeout = per_rank, timeout
        self.victim = victim  # one more rank than the checks run on, which dies first


MODES = {
    "ccom": Mode(),
    "gloo": Mode(backend="gloo"),
    # Half of the ranks on each of two "hosts", which meet over TCP.
    "ccom-hosts": Mode(per_rank=lambda rank: {"CCOM_HOSTID": f"host-{rank % 2}"}),
    "ccom-mapped": Mode(modules=("reduce", "move", "layout"), environment={"CCOM_TORCH_MAPPED_TENSORS": "1"}),
    # Programs that say gloo.
    "ccom-replaces-gloo": Mode(modules=("objects", "groups", "work"), backend="gloo",
                               environment={"CCOM_TORCH_REPLACE_GLOO": "1"}),
    # torch checks every call with a Gloo group of its own first.
    "ccom-detail": Mode(modules=("reduce", "move", "coalesced", "objects", "messages"),
                        environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    # On the group that is left after a death. Checks of groups apart, because some of them begin a new one.
    "ccom-shrunk": Mode(modules=tuple(BASIC[1:]), victim=1),
    "ccom-shrunk-groups": Mode(modules=("groups",), victim=1),
    "ccom-huge": Mode(modules=("huge",), timeout=500),
}
JOBS = [("ccom", 1), ("ccom", 2), ("ccom", 3), ("ccom", 4), ("gloo", 1), ("gloo", 2), ("gloo", 3), ("gloo", 4),
        ("ccom-hosts", 2), ("ccom-hosts", 3), ("ccom-hosts", 4), ("ccom-mapped", 2), ("ccom-mapped", 4),
        ("ccom-detail", 2), ("ccom-detail", 3), ("ccom-replaces-gloo", 2), ("ccom-replaces-gloo", 4),
        ("ccom-shrunk", 3), ("ccom-shrunk-groups", 3), ("ccom-huge", 2)]


def checks_in(module):
    with open(os.path.join(launch.PROGRAMS, f"checks_{module}.py"), encoding="utf-8") as file:
        functions = [node.name for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef)]
    return [f"checks_{module}.{name}" for name in functions if name.startswith("check_")]


def run(mode, count, checks):
    """What the ranks of a job found: {check: {rank: failures}}, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        death = [] if mode.victim is None else ["--victim", str(mode.victim)]
        try:
            job = launch.ranks("run_checks.py", "--backend", mode.backend, "--results", folder, *death, *checks,
                               count=count + bool(death), environment=mode.environment, per_rank=mode.per_rank,
                               timeout=mode.timeout, succeeds=None)
            wrong = [code for rank, code in enumerate(job.codes) if code != (-9 if rank == mode.victim else 0)]
            trouble = job.report if wrong else ""
        except AssertionError as failed:
            trouble = str(failed)
        found = {}
        for rank in range(count):
            path = os.path.join(folder, f"{rank}.json")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    for check, failures in json.load(file).items():
                        found.setdefault(check, {})[str(rank)] = failures
    return found, trouble


@pytest.fixture
def outcome(mode, count, request, tmp_path_factory):
    """Of the job, which the first of all workers runs that comes to one of its cases."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    path = folder / f"{mode}-{count}.json"
    with open(f"{path}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            cases = [item.callspec.params for item in request.session.items if item.path == request.path]
            checks = [case["check"] for case in cases if (case["mode"], case["count"]) == (mode, count)]
            if None in checks:
                checks = [f"checks_{module}" for module in MODES[mode].modules]
            path.write_text(json.dumps(run(MODES[mode], count, checks)), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def cases():
    for mode, count in JOBS:
        marks = [pytest.mark.long] if mode == "ccom-huge" else []
        if mode != "gloo":
            marks.append(pytest.mark.ccom)
        if MODES[mode].victim is not None and not hasattr(torch.distributed, "shrink_group"):
            marks.append(pytest.mark.skip(reason="this torch has no shrink_group"))
        for module in MODES[mode].modules:
            for check in checks_in(module):
                yield pytest.param(mode, count, check, marks=marks, id=f"{mode}-{count}-{check}")
        yield pytest.param(mode, count, None, marks=marks, id=f"{mode}-{count}-ends-well")


@pytest.mark.parametrize("mode,count,check", list(cases()))
def test_collectives(mode, count, check, outcome):
    found, trouble = outcome
    if check is None:
        assert not trouble, trouble
        return
    ranks = found.get(check, {})
    failures = [f"rank {rank}: {text}" for rank, texts in ranks.items() for text in texts]
    assert not failures, "\n".join(failures)
    missing = [rank for rank in range(count) if str(rank) not in ranks]
    assert not missing, f"ranks {missing} did not get so far\n{trouble}"
