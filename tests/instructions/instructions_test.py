# SPDX-License-Identifier: Apache-2.0
"""How many instructions a call executes that it has made before, as callgrind counts them: of libccom itself, without
waits for other ranks, and without the arithmetic and the copies of the data. The count hardly depends on the machine,
and on nothing that runs beside it.

    instructions_test.py allreduce|broadcast|allgather|persistent BYTES    prints the functions that take them
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.case import TestCase, parameters, program  # noqa: E402

CALLS, RANKS = 1000, 2
FUNCTIONS = {"allreduce": "ccomAllReduce", "broadcast": "ccomBroadcast", "allgather": "ccomAllGather",
             "persistent": "ccomPersistentStart"}
WAITS = re.compile(r"BasicFlagBarrier<[^>]*>::(wait\w*|await_reached)\(")
DATA = re.compile(r"^(void )?ccom::N_\w+::|mem(cpy|move)")


def profile(collective, size_bytes, calls):
    """({function: own instructions}, {(caller, function): instructions with all that it calls})"""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
             f"--toggle-collect={FUNCTIONS[collective]}", program("calls_program"), collective, str(size_bytes),
             str(calls)], capture_output=True, text=True, timeout=300,
            env=os.environ | {"CCOM_TUNING": "off", "CCOM_SOCKET_IFNAME": "lo", "CCOM_INIT_TIMEOUT_MS": "120000"})
        if run.returncode != 0:
            raise AssertionError(run.stderr)
        names, own, calls_of = {}, collections.Counter(), collections.Counter()

        def name_of(text):
            number, name = re.fullmatch(r"(\(\d+\))(?: (.*))?", text).groups()
            return names.setdefault(number, name)

        function, called, is_of_call = None, None, False
        for line in out.read_text().splitlines():
            if line.startswith("fn="):
                function = name_of(line[3:])
            elif line.startswith("cfn="):
                called = name_of(line[4:])
            elif line.startswith("calls="):
                is_of_call = True
            elif cost := re.match(r"[+\-*\d]\S* (\d+)$", line):
                if is_of_call:
                    calls_of[function, called] += int(cost[1])
                else:
                    own[function] += int(cost[1])
                is_of_call = False
        return own, calls_of


def count(collective, size_bytes):
    """(instructions of ccom itself in a call of one rank, {function: its own in a call})"""
    few, few_calls = profile(collective, size_bytes, 100)
    many, many_calls = profile(collective, size_bytes, 100 + CALLS)
    own = {name: (many[name] - few[name]) / CALLS / RANKS for name in many}
    waits = sum(many_calls[edge] - few_calls[edge] for edge in many_calls
                if WAITS.search(edge[1]) and not WAITS.search(edge[0])) / CALLS / RANKS
    data = sum(cost for name, cost in own.items() if DATA.search(name))
    return sum(own.values()) - waits - data, own


class Instructions(TestCase):
    @parameters(("allreduce", 8, 600), ("broadcast", 8, 600), ("allgather", 8, 650), ("persistent", 8, 650))
    def test_a_call_that_was_made_before_takes_few(self, collective, size_bytes, most):
        if shutil.which("valgrind") is None:
            raise unittest.SkipTest("valgrind is not installed")
        taken, own = count(collective, size_bytes)
        table = "".join(f"\n{cost:8.1f}  {name}" for name, cost in sorted(own.items(), key=lambda of: -of[1])[:20])
        print(f"{collective} of {size_bytes} bytes: {taken:.0f} instructions")
        self.assertLessEqual(taken, most, table)
        self.assertGreater(taken, 100, "what was counted cannot be a call" + table)


if __name__ == "__main__":
    taken_in_all, of_each = count(sys.argv[1], int(sys.argv[2]))
    print(f"{taken_in_all:.0f} without waits and data; of each function, with them:")
    for function_name, instructions in sorted(of_each.items(), key=lambda of: -of[1])[:40]:
        print(f"{instructions:8.1f}  {function_name[:150]}")
