# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted to see whether tests notice. scripts/mutate and the part "mutants" of scripts/test start it.

A mutant is tests/mutants/NAME.patch, a diff with a head of three lines: the row of docs/reliability.md or
docs/security.md whose promise it breaks, what it breaks, and the tests that must fail, written as in the tables
there.

    Row: D2
    Breaks: a death is noticed 150 ms late
    Tests: `liveness_processes:OneHost.*`

They are built in a copy of the project, build/mutants, so that nothing of the build folders changes. Tests of pytest
run in environments of that copy.
"""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
sys.path += [str(ROOT / "tests" / "selection"), str(ROOT / "tests" / "docs")]

import ctest_part  # noqa: E402
import digests  # noqa: E402
import rows  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: pathlib.Path
    row: str
    breaks: str
    tests: tuple  # of (test, cases), as rows.rows() has them

    @property
    def files(self):
        """What it changes, named from the root."""
        return re.findall(r"^\+\+\+ b/(\S+)", self.path.read_text(), re.MULTILINE)

    @property
    def needs_python(self):
        return any(rows.is_pytest(test) for test, _ in self.tests)


def mutants():
    found = []
    for path in sorted((ROOT / "tests" / "mutants").glob("*.patch")):
        head = dict(re.findall(r"^(Row|Breaks|Tests): (.+)$", path.read_text(), re.MULTILINE))
        tests = tuple(rows.tests_in(head.get("Tests", "")))
        if len(head) != 3 or not tests:
            raise SystemExit(f"mutate: {path.name} has no head of Row, Breaks and Tests")
        found.append(Mutant(path.stem, path, head["Row"], head["Breaks"], tests))
    return found


class DidNotRun(Exception):
    """Tests that are to fail."""


def _run(command):
    """Its code and what it printed, in the copy."""
    ended = subprocess.run(
        command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    return ended.returncode, ended.stdout


def prepare():
    """Makes the copy as the project is now. Files that are equal keep their times, so little is compiled again."""
    COPY.mkdir(parents=True, exist_ok=True)
    wanted = set(digests.tracked_files())
    for name in wanted:
        source, target = ROOT / name, COPY / name
        if not source.exists() or source.is_dir():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in COPY.rglob("*"):
        name = path.relative_to(COPY).as_posix()
        if name.split("/")[0] not in ("build", ".git") and path.is_file() and name not in wanted:
            path.unlink()
    if not (COPY / ".git").exists():  # the version of the build is asked for, and the commit
        subprocess.run(["git", "init", "-q", str(COPY)], check=True)
        author = ["-c", "user.name=mutants", "-c", "user.email=mutants"]
        subprocess.run(["git", "-C", str(COPY), *author, "commit", "-q", "--allow-empty", "-m", "mutants"], check=True)
    code, output = _run(["cmake", "--preset", "release", "-DCCOM_TESTS=ON", "--log-level=WARNING"])
    if code:
        raise SystemExit(f"mutate: cannot configure the copy:\n{output[-3000:]}")


def is_built():
    """Whether the library has been built in the copy, of whatever sources."""
    return any((COPY / "build" / "release" / "src" / "api").glob("libccom.so*"))


def applies(mutant):
    """Whether the patch fits the project as it is."""
    command = ["git", "apply", "--check", str(mutant.path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def _targets(mutant):
    """What has to be built for its tests."""
    found = set()
    for test, cases in mutant.tests:
        if rows.is_pytest(test):
            continue
        if f"test_{test}" in _known_targets():
            found.add(f"test_{test}")
        else:
            found |= _programs_of_script(test, cases)
    return sorted(found)


def _programs_of_script(test, cases):
    """Files of the build folder that ctest says its cases need, as ninja calls them."""
    _, said = _run(["ctest", "--test-dir", "build/release", "--show-only=json-v1", "-R", rows.regex_of(test, cases)])
    folder = f"{COPY}/build/release/"
    files = {
        file.removeprefix(folder)
        for entry in json.loads(said[said.index("{") :])["tests"]
        for file in [*entry.get("command", []), *ctest_part.property_of(entry, "REQUIRED_FILES")]
        if file.startswith(folder)
    }
    return files or {"all"}


@functools.cache
def _known_targets():
    _, listed = _run(["ninja", "-C", "build/release", "-t", "targets", "all"])
    return set(re.findall(r"^(\w+): phony", listed, re.MULTILINE))


def _fails_by_pytest(test, cases, output):
    part = test.split("/")[1]
    words = ["--part", part, test, *(["-k", cases] if cases else [])]
    _, text = _run([sys.executable, "tests/selection/main.py", *words])
    output.append(text)
    if "PROBLEM: " in text or "== what was run" not in text:
        raise DidNotRun()
    return "FAILED: " in text


def _fails(test, cases, output):
    if rows.is_pytest(test):
        return _fails_by_pytest(test, cases, output)
    command = ["ctest", "--test-dir", "build/release", "--output-on-failure", "--no-tests=error", "-j", "4"]
    command += ["--stop-on-failure", "--timeout", "120", "-R", rows.regex_of(test, cases)]
    code, text = _run(command)
    output.append(text)
    if "No tests were found" in text:
        raise DidNotRun()
    return code != 0


def verdict(mutant, output):
    """red, green, or what is wrong with the mutant itself."""
    # Of the copy, since the project may be worked on meanwhile.
    before = {name: (COPY / name).read_bytes() for name in mutant.files if (COPY / name).exists()}
    code, text = _run(["git", "apply", str(mutant.path)])
    output.append(text)
    if code:
        return "does not apply"
    try:
        targets = _targets(mutant) or ["installed"]
        code, text = _run(["cmake", "--build", "--preset", "release", "-j", str(os.cpu_count()), "--target", *targets])
        output.append(text[-6000:])
        if code:
            return "does not compile"
        return "red" if any(_fails(test, cases, output) for test, cases in mutant.tests) else "green"
    except DidNotRun:
        return "did not run"
    finally:
        for name, contents in before.items():
            (COPY / name).write_bytes(contents)


def main(names):
    known = mutants()
    if names == ["--list"]:
        for mutant in known:
            print(f"{mutant.name:32} {mutant.row:16} {mutant.breaks}")
        return 0
    unknown = set(names) - {mutant.name for mutant in known}
    if unknown:
        raise SystemExit(f"mutate: no mutant {', '.join(sorted(unknown))}")
    prepare()
    wrong = 0
    for mutant in known:
        if names and mutant.name not in names:
            continue
        output = []
        found = verdict(mutant, output)
        print(f"{found:5} {mutant.name:32} {mutant.row:16} {mutant.breaks}", flush=True)
        if found != "red":
            wrong += 1
            print("".join(output)[-3000:], flush=True)
    print(f"{wrong} mutants were not noticed" if wrong else "every mutant was noticed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
