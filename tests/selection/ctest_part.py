# SPDX-License-Identifier: Apache-2.0
"""The cases of a build folder: what ctest knows of them, what they depend on, and running some by their numbers."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import digests
from choice import Case
from result import Result

RESULT_LINE = re.compile(r"^ *\d+/\d+ Test +#(\d+): (\S+) .*?(Passed|\*\*\*[A-Za-z :]+?) +([0-9.]+) sec")
OUTCOMES = {"Passed": "passed", "***Skipped": "skipped"}


@dataclasses.dataclass(frozen=True)
class Test:
    number: int
    name: str
    labels: tuple
    case: Case
    program: str = ""  # a test program's name; "" for a script and what else a case starts
    is_built: bool = True


def property_of(entry, name):
    return next((found["value"] for found in entry.get("properties", []) if found["name"] == name), [])


def depends_on(entry):
    """Files of a case: its command's and REQUIRED_FILES, libraries of ours that these load, data of its folder."""
    required = list(property_of(entry, "REQUIRED_FILES"))
    named = [word for word in entry.get("command", []) + required if os.path.isfile(word)]
    files = set(named)
    for folder in filter(os.path.isdir, required):
        files.update(digests.files_below(os.path.relpath(folder, digests.ROOT)))
    built = [path for path in named if "/build/" in path]
    for path in built:
        files.update(digests.libraries_of(path))
    folders = {match.group(1) for path in named if (match := re.search(r"/(tests/\w+)/", path))}
    if not any(
        "/tests/test_" in path or "/test_" in path for path in built[:1]
    ):  # a script, or a program of the project's
        folders.add("tests/harness")
        if len(built) == 0:
            return set(digests.files_below(""))  # it does not say what it uses
    for folder in folders:
        files.update(digests.files_below(folder, with_sources=False))
    return files


def listed(build):
    """What ctest says of each test; of a GoogleTest program that is not built it has one, PROGRAM_NOT_BUILT."""
    said = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(said)["tests"]


def tests_of(build):
    found, known = [], {}
    for number, entry in enumerate(listed(build), 1):
        command = entry.get("command", [])
        labels = tuple(property_of(entry, "LABELS"))
        files = frozenset(depends_on(entry))
        if files not in known:
            known[files] = digests.of_all(files, digests.machine())
        # Arguments belong to it, without the clone's place.
        words = [os.path.basename(word) if "/" in word else word for word in command]
        case = Case(entry["name"], f"{known[files][:32]}{digests.of_all((), *words)[:16]}")
        program = os.path.basename(command[0]) if command else ""
        # ctest names no command where the program is missing that it once had.
        is_built = bool(command) and not entry["name"].endswith("_NOT_BUILT")
        found.append(
            Test(number, entry["name"], labels, case, program if program.startswith("test_") else "", is_built)
        )
    return found


class Batch:
    """Runs tests by ctest until all have ended; those that have not at the deadline are left."""

    def __init__(self, build, jobs):
        self.build, self.jobs = build, jobs

    def run(self, tests, deadline, extra=()):
        """tests: by decreasing urgency. Yields a Result for each that ended."""
        by_number = {test.number: test for test in tests}
        with tempfile.NamedTemporaryFile("w", prefix="ccom-tests-", suffix=".txt") as chosen:
            # ctest does not read a last number without an end of line.
            chosen.write("0,0,0," + ",".join(map(str, sorted(by_number))) + "\n")
            chosen.flush()
            # There are twice as many places as processors. A case that waits takes one, others two (CcomRooms.cmake).
            command = [
                "ctest",
                "--test-dir",
                self.build,
                "-I",
                chosen.name,
                "-j",
                str(2 * self.jobs),
                "--output-on-failure",
                *extra,
            ]
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            watch = _Watch(process, deadline)
            output = []
            for line in process.stdout:
                output.append(line)
                match = RESULT_LINE.match(line)
                if match is None:
                    continue
                test = by_number.get(int(match.group(1)))
                if test is None:
                    continue  # a fixture
                if test.name != match.group(2):
                    os.killpg(process.pid, signal.SIGTERM)
                    raise SystemExit(f"ccom: {self.build} was configured again while its tests ran: run them again")
                outcome = OUTCOMES.get(match.group(3).strip(), "failed")
                if outcome == "failed" and watch.has_ended_it:
                    continue  # it was ended by the clock
                yield Result(test.case, outcome, float(match.group(4)), match.group(3).strip("* "))
            process.wait()
            watch.end()
        self.output = "".join(output)


class _Watch:
    """Ends ctest, and what it started, at a time; it tells ctest's tests apart by the session."""

    def __init__(self, process, deadline):
        import threading

        self._process, self.has_ended_it = process, False
        self._timer = threading.Timer(max(0.1, deadline - time.time()), self._stop)
        self._timer.daemon = True
        self._timer.start()

    def _stop(self):
        if self._process.poll() is None:
            self.has_ended_it = True
            os.killpg(self._process.pid, signal.SIGTERM)
            time.sleep(2)  # ctest ends its tests
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self):
        self._timer.cancel()
