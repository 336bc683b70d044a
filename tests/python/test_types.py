# SPDX-License-Identifier: Apache-2.0
"""The stubs: what mypy says of users' programs and of the package, and that they name what is there."""

import os
import subprocess
import sys

import ccom
import pytest
from ccom import _core

FOLDER = os.path.dirname(os.path.abspath(__file__))


def mypy(*words):
    # An installed package is found by its py.typed.
    parent = os.path.dirname(os.path.dirname(ccom.__file__))
    environment = {**os.environ, "MYPYPATH": "" if "site-packages" in parent else parent}
    return subprocess.run(
        [sys.executable, "-m", "mypy", *words], env=environment, cwd=FOLDER, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("mypy"))


def test_programs_of_users(cache):
    checked = mypy("--strict", "--cache-dir", cache, "types_of_users.py")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_mistakes_are_found(cache, tmp_path):
    (tmp_path / "wrong.py").write_text(
        "import ccom, numpy\nccom.init().all_reduce('text', inplace=3)\nccom.init().rank = 3\n"
    )
    checked = mypy("--cache-dir", cache, str(tmp_path / "wrong.py"))
    assert checked.returncode == 1 and "wrong.py:2" in checked.stdout and "wrong.py:3" in checked.stdout, checked.stdout


def test_stubs_name_what_there_is():
    with open(os.path.join(os.path.dirname(ccom.__file__), "_core.pyi"), encoding="utf-8") as file:
        stubs = file.read()
    for kind in (_core.Communicator, _core.Handle, _core.Operator, _core.Window, _core.Registration):
        for name in dir(kind):
            if not name.startswith("_"):
                assert f"def {name}(" in stubs, f"{kind.__name__}.{name}"
    for line in stubs.splitlines():
        if line.startswith("def "):
            assert hasattr(_core, line[4 : line.index("(")]), line


def test_everything_public_is_documented():
    for name in ccom.__all__:
        value = getattr(ccom, name)
        assert name == "ANY_RANK" or value.__doc__, name
    for name in dir(ccom.Communicator):
        if not name.startswith("_"):
            assert getattr(ccom.Communicator, name).__doc__, name
    assert set(ccom.__all__) <= set(dir(ccom))
