#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of unittest that are known to ctest one by one (ccom_add_python_test, cmake/CcomRooms.cmake).

    case.py FILE Class.test_method     runs it; exit 77 if it was skipped, or a part of it
    case.py FILE                       all of the file
    case.py --list FILE                their names, without an import: what the file needs may be missing

In a file: `class Something(TestCase)`, and for a case per value `@parameters(a, b, c)` before a method. Values are
literals, or `@parameters(*NAME)` with a constant of the file.
"""
import ast
import importlib.util
import os
import pathlib
import re
import socket
import sys
import unittest

SKIPPED = 77
SOURCES = pathlib.Path(os.environ.get("CCOM_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
BUILD = pathlib.Path(os.environ.get("CCOM_BINARY_DIR") or SOURCES / "build" / "release")


def parameters(*values):
    """A case for each value, which the method gets; a tuple is several arguments."""
    def mark(method):
        method.values_of_cases = values
        return method
    return mark


def name_of(method, value):
    words = re.sub(r"\W+", "_", " ".join(map(str, value if isinstance(value, tuple) else (value,))))
    return f"{method}_{words.strip('_')}"


def _with(method, arguments):
    return lambda self: method(self, *arguments)


class TestCase(unittest.TestCase):
    def __init_subclass__(cls):
        for name, method in list(vars(cls).items()):
            for value in getattr(method, "values_of_cases", ()):
                setattr(cls, name_of(name, value), _with(method, value if isinstance(value, tuple) else (value,)))
            if hasattr(method, "values_of_cases"):
                delattr(cls, name)


def program(name):
    """The path of a program that the test has among its PROGRAMS; outside of ctest, of one in the build folder."""
    given = os.environ.get("CCOM_TEST_PROGRAMS")
    paths = map(pathlib.Path, given.split(":")) if given else sorted(BUILD.glob(f"**/{name}"))
    found = [path for path in paths if path.name == name and os.access(path, os.X_OK) and path.is_file()
             and path.parent != BUILD / "programs"]  # scripts that start the programs
    if not found:
        raise FileNotFoundError(f"{name} is neither in CCOM_TEST_PROGRAMS nor in {BUILD}")
    return str(found[0])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def names(path):
    tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8"))
    constants = {node.targets[0].id: node.value for node in tree.body
                 if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}

    def values(decorator):
        for argument in decorator.args:
            if isinstance(argument, ast.Starred):
                yield from ast.literal_eval(constants[argument.value.id])
            else:
                yield ast.literal_eval(argument)

    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        methods = [node for node in group.body if isinstance(node, ast.FunctionDef)]
        for method in (node for node in methods if node.name.startswith("test")):
            calls = [each for each in method.decorator_list if isinstance(each, ast.Call)]
            marks = [call for call in calls if getattr(call.func, "id", "") == "parameters"]
            found = [name_of(method.name, value) for mark in marks for value in values(mark)]
            yield from (f"{group.name}.{name}" for name in found or [method.name])


def main(path, *cases):
    if path == "--list":
        print(*names(cases[0]), sep="\n")
        return 0
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    suite = unittest.defaultTestLoader.loadTestsFromNames(cases or names(path), module)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful() or result.testsRun == 0 and not result.skipped:
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    from harness import case  # the files' own `harness.case`, not __main__
    sys.exit(case.main(*sys.argv[1:]))
