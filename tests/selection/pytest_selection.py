# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: runs those of the collected cases that choice.py names, most urgent first, until a time.

Settings are in the environment: TEST_SELECTION_PLAN, a JSON file with the part's records; TEST_SELECTION_RESULTS, where
the outcomes are written. Without TEST_SELECTION_PLAN nothing is chosen. With pytest-xdist each worker chooses the same.
"""

import json
import os
import time

import choice
import digests
import pytest

LEFT = "ccom: left for want of time"
PLAN = "TEST_SELECTION_PLAN"
RESULTS = "TEST_SELECTION_RESULTS"


def digest_of_folder(folder):
    """Of what its cases share: helpers and programs of the folder, the harness, the installed package, our library."""
    import importlib.util

    files = [path for path in digests.files_below(folder) if not os.path.basename(path).startswith("test_")]
    files += digests.files_below("tests/harness") + digests.files_below("examples")
    spec = importlib.util.find_spec("ccom")
    if spec is not None:
        for top, _, names in os.walk(os.path.dirname(spec.origin)):
            if "__pycache__" not in top:
                files += [os.path.join(top, name) for name in names]
    build = os.environ.get("TEST_SELECTION_LIBRARIES", "")
    return digests.of_all(
        files + [path for path in build.split(":") if path],
        digests.machine(),
        os.environ.get("TEST_SELECTION_VERSIONS", ""),
    )


class Chooser:
    def __init__(self, plan):
        self.plan, self.digests, self.spared, self.cases = plan, {}, [], {}

    def case_of(self, item):
        path = os.path.realpath(str(item.path))
        folder = os.path.relpath(os.path.dirname(path), digests.ROOT)
        if path not in self.digests:
            shared = self.digests.setdefault(folder, digest_of_folder(folder))
            self.digests[path] = digests.of_all([path], shared)
        return choice.Case(item.nodeid, self.digests[path])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        by_name = {item.nodeid: item for item in items}
        cases = [self.case_of(item) for item in items]
        records = {name: choice.Record(*values) for name, values in self.plan["records"].items()}
        if self.plan["all"]:
            chosen = choice.Choice([], cases, [])
        else:
            chosen = choice.choose(cases, records, self.plan["commit"])
        todo = chosen.todo
        smoke = [case for case in cases if by_name[case.name].get_closest_marker("smoke")]
        if self.plan["smoke"]:
            todo = smoke + [case for case in todo if case not in smoke]
        self.spared = [case.name for case in cases if case not in set(todo)]
        for case in todo:
            by_name[case.name].user_properties.append(("ccom digest", case.digest))
        items[:] = [by_name[case.name] for case in todo]
        if not hasattr(config, "workerinput") or config.workerinput["workerid"] == "gw0":
            with open(os.environ[RESULTS] + ".spared", "w", encoding="utf-8") as file:
                json.dump({"spared": self.spared, "todo": [case.name for case in todo]}, file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        if time.time() > self.plan["deadline"]:
            pytest.skip(LEFT)


class Recorder:
    """Of the process that gets all reports."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        known = self.found.setdefault(
            report.nodeid, {"name": report.nodeid, "outcome": "passed", "seconds": 0.0, "reason": "", "digest": ""}
        )
        known["seconds"] += report.duration
        known["digest"] = dict(report.user_properties).get("ccom digest", known["digest"])
        if report.failed:
            known["outcome"], known["reason"] = "failed", report.when
        elif report.skipped and known["outcome"] == "passed":
            known["outcome"] = "skipped"
            known["reason"] = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
            if LEFT in known["reason"]:
                known["outcome"] = "left"

    def pytest_sessionfinish(self):
        with open(os.environ[RESULTS], "w", encoding="utf-8") as file:
            json.dump(list(self.found.values()), file)


def pytest_configure(config):
    config.addinivalue_line("markers", "smoke: runs each time, first")
    if PLAN not in os.environ:
        return
    with open(os.environ[PLAN], encoding="utf-8") as file:
        config.pluginmanager.register(Chooser(json.load(file)), "ccom-chooser")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(), "ccom-recorder")
