# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix in docs/reliability.md: runs the tests of one, or compares all with the tests that there are.

    rows.py run BUILD ROW [ctest arguments]     scripts/test --row ROW builds first
    rows.py check BUILD                         and that each mutant applies, and names a row and tests, and that each
                                                row has one
    rows.py parts BUILD                         the matrix with its column "Part" as it must be

A row's test cell names tests as `program:cases`: cases is a GoogleTest filter, or names of a script's cases. Without
cases all of them are meant. What lies in tests/torch is pytest's: `tests/torch/test_faults.py:expression`. The part is
the one of scripts/test that runs them.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"
sys.path.insert(0, str(ROOT / "tests" / "selection"))

import parts  # noqa: E402


def tests_in(text):
    """[(test, cases)] that stand in a text as `program:cases`."""
    return re.findall(r"`(\w+|tests/(?:torch|python|jax)/\w+\.py)(?::([^`]+))?`", text)


def rows():
    """{row: ([(test, cases)], part)} of the table whose first column is "Row"."""
    found, columns = {}, None
    for line in PAGE.read_text().split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            columns = None
        elif cells[1] == "Row":
            columns = cells.index("Test"), cells.index("Part")
        elif columns is not None and not cells[1].startswith("---"):
            named = tests_in(cells[columns[0]])
            if cells[1] in found or not named:
                raise SystemExit(f"rows: row {cells[1]} of {PAGE.name} stands there twice or names no test")
            found[cells[1]] = named, cells[columns[1]]
    return found


def rows_of_security():
    """First cells of the first table of docs/security.md, without emphasis."""
    table = (ROOT / "docs" / "security.md").read_text().split("\n|---|")[1].split("\n\n")[0]
    return [line.split("|")[1].strip(" *`") for line in table.split("\n")[1:]]


def labels_of(build):
    """{name of a case: its labels} of ctest's."""
    command = ["ctest", "--test-dir", build, "--show-only=json-v1"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        test["name"]: next((found["value"] for found in test.get("properties", []) if found["name"] == "LABELS"), [])
        for test in json.loads(listed)["tests"]
    }


def is_pytest(test):
    return test.startswith("tests/")


def regex_of(test, cases):
    """For ctest -R."""
    if not cases:
        return rf"^{test}(\.|$)"
    globs = [re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".") for glob in re.split(r"[: ]", cases) if glob]
    return rf"^{test}\.({'|'.join(globs)})$"


def parts_of(test, cases, labels):
    """Names of the parts that run a row's cases; none if there are no such cases."""
    if is_pytest(test):
        path = ROOT / test
        exists = path.exists() and (not cases or re.search(rf"\bdef test_\w*{cases}", path.read_text()))
        return {test.split("/")[1]} if exists else set()
    known = (parts.RELEASE, parts.INSTALLS, parts.SOAKS)
    found = set()
    for pattern in [cases] if not cases else [glob for glob in re.split(r"[: ]", cases) if glob]:
        names = [name for name in labels if re.match(regex_of(test, pattern), name)]
        if not names:
            return set()
        found |= {part.name for name in names for part in known if part.selects(labels[name])}
    return found


def run(build, row, *more):
    if row not in rows():
        raise SystemExit(f"rows: no row {row} in {PAGE}; there are {', '.join(rows())}")
    codes, skipped = [], []
    for test, cases in rows()[row][0]:
        if is_pytest(test):
            part = test.split("/")[1]
            command = [ROOT / "scripts" / "test", "--part", part, ROOT / test, *(["-k", cases] if cases else [])]
        else:
            words = ["ctest", "--test-dir", build, "--verbose", "--no-tests=error", "-R", regex_of(test, cases)]
            command = [*words, *more]
        print(f"\nrow {row}: {test} {cases}", flush=True)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
        for line in process.stdout:
            print(line, end="", flush=True)
            if re.search(r"\*\*\*Skipped|\b[1-9]\d* skipped\b", line):
                skipped.append(f"{test}: {line.strip()}")
        codes.append(process.wait())
    if skipped:
        print(f"\nrow {row}: NOT SHOWN by what was skipped:\n" + "\n".join(skipped), flush=True)
    return max(codes)


def check(build):
    labels, wrong = labels_of(build), []
    for row, (named, part) in rows().items():
        needed = set()
        for test, cases in named:
            found = parts_of(test, cases, labels)
            needed |= found
            if not found:
                wrong.append(f"{row}: no test {test} has cases {cases or 'at all'}")
        if ", ".join(sorted(needed)) != part:
            wrong.append(f"{row}: part is {part!r}, and must be {', '.join(sorted(needed))!r}")
    sys.path.append(str(ROOT / "tests" / "mutants"))
    import mutate

    known = mutate.mutants()
    wrong += [f"mutant {mutant.name} does not apply" for mutant in known if not mutate.applies(mutant)]
    wrong += [
        f"mutant {mutant.name}: there is no row {mutant.row}"
        for mutant in known
        if mutant.row not in rows() and not mutant.row.startswith("security: ")
    ]
    wrong += [
        f"mutant {mutant.name}: no test {test} has cases {cases or 'at all'}"
        for mutant in known
        for test, cases in mutant.tests
        if not parts_of(test, cases, labels)
    ]
    planted = {mutant.row for mutant in known}
    wrong += [
        f"{row}: no fault of tests/mutants breaks it"
        for row in rows()
        if row not in planted
    ]
    wrong += [
        f"security: no fault of tests/mutants breaks `{row}`"
        for row in rows_of_security()
        if not any(one.startswith("security: ") and row.startswith(one[len("security: ") :]) for one in planted)
    ]
    print("\n".join(wrong) or f"{len(rows())} rows, {len(known)} mutants")
    return 1 if wrong else 0


def write_parts(build):
    labels, known = labels_of(build), rows()
    lines = []
    for line in PAGE.read_text().split("\n"):
        cells = line.split("|")
        if line.startswith("|") and cells[1].strip() in known:
            named, _ = known[cells[1].strip()]
            cells[4] = f" {', '.join(sorted(set().union(*(parts_of(test, cases, labels) for test, cases in named))))} "
            line = "|".join(cells)
        lines.append(line)
    PAGE.write_text("\n".join(lines))
    return 0


if __name__ == "__main__":
    command, build, *more = sys.argv[1:]
    sys.exit({"check": check, "parts": write_parts, "run": run}[command](build, *more))
