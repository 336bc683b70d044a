# SPDX-License-Identifier: Apache-2.0
"""The console commands: each becomes the program of its name in this package's folder."""
import os
import sys


def _become(name, *first):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.exists(path):
        sys.exit(f"{name}: not in this installation of ccom, which was built without the programs (ccom_DIR in "
                 "docs/installing.md)")
    os.execv(path, [name, *first, *sys.argv[1:]])


def bench():
    _become("ccom-bench")


def doctor():
    _become("ccom-doctor")


def run():
    _become("ccom-run", "--python", sys.executable)


def sim():
    _become("ccom-sim")


def status():
    _become("ccom-status")


def top():
    _become("ccom-top")


def topo():
    _become("ccom-topo")


def trace():
    _become("ccom-trace")
