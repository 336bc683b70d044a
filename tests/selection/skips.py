# SPDX-License-Identifier: Apache-2.0
"""Which cases may be skipped: tests/expected_skips. And which cases the sources declare, so that none can vanish."""

import fnmatch
import importlib.util
import os
import re
import shutil

import digests

FILE = digests.ROOT / "tests" / "expected_skips"
# A case may be skipped where its condition holds.
CONDITIONS = {
    "no-root": lambda: os.geteuid() != 0,
    "no-slurm": lambda: shutil.which("slurmctld") is None,
    "no-debootstrap": lambda: os.geteuid() != 0 or shutil.which("debootstrap") is None,
    "no-buildah": lambda: shutil.which("buildah") is None,
    "no-cross-compiler": lambda: shutil.which("aarch64-linux-gnu-g++") is None,
    "no-intel-mpi": lambda: not os.path.isdir("build/peers/intelmpi") and importlib.util.find_spec("impi_rt") is None,
    "anywhere": lambda: True,
}


def read(text):
    """[(part, pattern, condition)]; a line is `part pattern condition  why`."""
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        words = line.split(maxsplit=3)
        if len(words) < 4:
            raise SystemExit(f"tests/expected_skips:{number}: expected `part pattern condition why`, got {line!r}")
        if words[2] not in CONDITIONS:
            raise SystemExit(
                f"tests/expected_skips:{number}: no condition {words[2]!r}; there are {', '.join(CONDITIONS)}"
            )
        rules.append(tuple(words[:3]))
    return rules


def expected():
    return read(FILE.read_text(encoding="utf-8"))


def is_expected(part, name, rules):
    return any(
        fnmatch.fnmatchcase(part, of_part) and fnmatch.fnmatchcase(name, pattern) and CONDITIONS[condition]()
        for of_part, pattern, condition in rules
    )


def unexpected(results_by_part):
    """Skipped cases that the file does not allow here."""
    rules = expected()
    return [
        f"{part}: {result.case.name}" + (f" ({result.reason})" if result.reason else "")
        for part, results in results_by_part.items()
        for result in results
        if result.outcome == "skipped" and not is_expected(part, result.case.name, rules)
    ]


def stale(names, parts, rules):
    """Lines that speak of cases which ctest does not have; names: all of them, parts: those that run some."""
    return [
        f"{part} {pattern}"
        for part, pattern, _ in rules
        if fnmatch.filter(parts, part) and not fnmatch.filter(names, pattern)
    ]


DECLARATION = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
KNOWN = re.compile(
    r"^\w+\.(?:[A-Za-z_]\w*/)?([A-Za-z_]\w*)(?:/\d+)?\.(\w+)(?:/.*)?$"
)  # program.Instance/Suite.Case/parameter


def declared_cases(text):
    """{(suite, case)} of a GoogleTest file."""
    return set(DECLARATION.findall(text))


def vanished(names):
    """GoogleTest cases that stand in the sources and that ctest does not know; names: all of ctest's."""
    known = {match.groups() for name in names if (match := KNOWN.match(name))}
    missing = []
    for path in digests.files_below("tests"):
        if path.endswith(".cc"):
            with open(path, encoding="utf-8") as file:
                missing += [
                    f"{os.path.relpath(path, digests.ROOT)}: {suite}.{case}"
                    for suite, case in sorted(declared_cases(file.read()) - known)
                ]
    return missing
