# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix in docs/reliability.md: runs the tests of one, or compares all with the tests that there are.

    rows.py run BUILD ROW [ctest arguments]     scripts/test --row ROW builds first
    rows.py check BUILD

A row's test cell names tests as `ctest name:cases`; cases are a GoogleTest filter, or names of unittest methods. What
lies in tests/torch is pytest's: `tests/torch/test_faults.py:expression`, run by scripts/test --torch.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"


def rows():
    """{row: [(test, cases)]} of the table whose first column is "Row"."""
    found, tests_column = {}, None
    for line in PAGE.read_text().split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            tests_column = None
        elif cells[1] == "Row":
            tests_column = cells.index("Test")
        elif tests_column is not None and not cells[1].startswith("---"):
            named = re.findall(r"`(\w+|tests/torch/\w+\.py)(?::([^`]+))?`", cells[tests_column])
            if cells[1] in found or not named:
                raise SystemExit(f"rows: row {cells[1]} of {PAGE.name} stands there twice or names no test")
            found[cells[1]] = named
    return found


def tests_of(build):
    """{name: command} of ctest's tests."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True,
                            text=True).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(listed)["tests"]}


def is_pytest(test):
    return test.startswith("tests/torch/")


def run(build, row, more):
    tests = rows().get(row)
    if tests is None:
        raise SystemExit(f"rows: no row {row} in {PAGE}; there are {', '.join(rows())}")
    codes, skipped = [], []
    for test, cases in tests:
        if is_pytest(test):
            command = [ROOT / "scripts" / "test", "--torch", ROOT / test, *(["-k", cases] if cases else [])]
        else:
            command = ["ctest", "--test-dir", build, "--verbose", "--no-tests=error", "-R", f"^{test}$", *more]
        print(f"\nrow {row}: {test} {cases}", flush=True)
        environment = os.environ | ({"GTEST_FILTER": cases} if cases else {})
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, errors="replace")
        for line in process.stdout:
            print(line, end="", flush=True)
            if re.search(r"\*\*\*Skipped|\[  SKIPPED \] .*\(|\b[1-9]\d* skipped\b", line):
                skipped.append(f"{test}: {line.strip()}")
        codes.append(process.wait())
    if skipped:
        print(f"\nrow {row}: NOT SHOWN by what was skipped:\n" + "\n".join(skipped), flush=True)
    return max(codes)


def has_cases(command, cases):
    """Whether a GoogleTest or unittest program has cases of these names."""
    scripts = [word for word in command if word.endswith(".py")]
    if scripts:
        return all(f"def {name}" in pathlib.Path(scripts[0]).read_text() for name in cases.split())
    def exists(pattern):
        listed = subprocess.run([command[0], "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True,
                                text=True)
        return any(line.startswith("  ") for line in listed.stdout.split("\n"))

    return all(exists(pattern) for pattern in cases.split(":"))


def check(build):
    tests, wrong = tests_of(build), []
    for row, named in rows().items():
        for test, cases in named:
            if is_pytest(test):
                path = ROOT / test
                if not path.exists() or cases and not re.search(rf"\bdef test_\w*{cases}", path.read_text()):
                    wrong.append(f"{row}: no tests {test} -k {cases}")
            elif test not in tests:
                wrong.append(f"{row}: no test {test}")
            elif cases and not has_cases(tests[test], cases):
                wrong.append(f"{row}: test {test} has no cases {cases}")
    print("\n".join(wrong) or f"{len(rows())} rows")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]))
    sys.exit(run(sys.argv[2], sys.argv[3], sys.argv[4:]))
