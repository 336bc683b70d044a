# SPDX-License-Identifier: Apache-2.0
"""Builds and runs tests; scripts/test starts it.

  scripts/test                 lint, the short tests of the release build, those of Python, a smoke of torch
  scripts/test --rest [PART...]
                               what else is due: torch, JAX, the release build's long matrices and what was left,
                               AddressSanitizer; then by turns, as far as the time goes, ThreadSanitizer, fuzzing,
                               planted faults (scripts/mutate), installations (wheel, packages, Debian trees); ends
                               after --minutes (40)
  scripts/test --all           everything, whatever the ledger says and however long it takes
  scripts/test --part PART [ARGUMENTS]
                               all cases of a part, or those that ctest's or pytest's arguments name:
                               --part release -R shm, --part torch -k messages
  scripts/test --row ROW       the tests of a row of docs/reliability.md

CCOM_TEST_LONG=1 means more kills, more seeds, more time. A case is spared if it has passed on this machine with what it
depends on: tests/selection/choice.py is the only rule. The ledger is ~/.cache/ccom/tests.sqlite. A skipped case that
tests/expected_skips does not name is a failure.
"""

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import choice
import digests
import parts
import skips
from ledger import Ledger

MINUTES_OF_REST = 40
LEAST_SECONDS_OF_TURN = 300


class Run:
    """All parts of one run, and what it prints in the end."""

    def __init__(self, everything=False, ledger=None):
        self.ledger = ledger or Ledger()
        self.everything = everything
        self.results, self.spared, self.left, self.failures, self.times = {}, {}, {}, [], []
        self.commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=digests.ROOT, capture_output=True, text=True
        ).stdout.strip()

    def part(self, part, deadline=None, arguments=()):
        begin = time.time()
        print(
            f"\n== {part.name}" + (f", {max(0.0, deadline - begin) / 60:.1f} minutes at most" if deadline else ""),
            flush=True,
        )
        try:
            outcome = part.run(self, deadline or begin + 24 * 3600, arguments)
        except subprocess.CalledProcessError as error:
            self.failures.append(f"{part.name}: {' '.join(map(str, error.cmd))} ended with {error.returncode}")
            outcome = parts.Outcome()
        self.results.setdefault(part.name, []).extend(outcome.results)
        self.spared[part.name], self.left[part.name] = outcome.spared, outcome.left
        self.failures += [f"{part.name}: {problem}" for problem in outcome.problems]
        self.times.append((part.name, time.time() - begin, len(outcome.results)))

    def leave(self, part):
        self.left[part.name] = ["all of it"]
        self.times.append((part.name, 0.0, 0))

    def report(self):
        """Prints what was run, spared and left; True if all is well."""
        failed = [
            f"{part}: {result.case.name}"
            for part, results in self.results.items()
            for result in results
            if result.outcome == "failed"
        ]
        unexpected = skips.unexpected(self.results)
        every = [
            (result.seconds, part, result.case.name) for part, results in self.results.items() for result in results
        ]
        count = {
            outcome: sum(result.outcome == outcome for results in self.results.values() for result in results)
            for outcome in ("passed", "failed", "skipped")
        }
        print("\n== what was run")
        print(f"{'part':16} {'seconds':>8} {'run':>6} {'spared':>7} {'left':>6}")
        for name, seconds, run in self.times:
            print(f"{name:16} {seconds:8.0f} {run:6} {self.spared.get(name, 0):7} {len(self.left.get(name, [])):6}")
        for part, names in self.left.items():
            if names:
                print(
                    f"left for want of time in {part}, first in the next run: {', '.join(names[:8])}"
                    + (f" and {len(names) - 8} more" if len(names) > 8 else "")
                )
        print("slowest:")
        for seconds, part, name in sorted(every, reverse=True)[:10]:
            print(f"  {seconds:7.1f} s  {part}: {name}")
        for title, problems in (
            ("FAILED", failed),
            ("SKIPPED, but not in tests/expected_skips", unexpected),
            ("PROBLEM", self.failures),
        ):
            for problem in problems:
                print(f"{title}: {problem}")
        wrong = len(failed) + len(unexpected) + len(self.failures)
        print(f"{count['passed']} passed, {wrong} failed, {count['skipped'] - len(unexpected)} skipped", flush=True)
        if not every:
            print("nothing was due: no case ran")
        return wrong == 0


def rest(run, names, deadline):
    """Each part gets its share of the time that is left; what one does not need goes to the next ones.

    Parts that take turns come last, the one first that has not run for longest, and each of them may use all the time
    that is left.
    """
    planned = [part for part in parts.of_rest() if not names or part.name in names]
    steady = [part for part in planned if part not in parts.TURNS]
    turns = sorted(
        (part for part in planned if part in parts.TURNS),
        key=lambda part: (run.ledger.place(part.name), choice.rank_in_commit(run.commit, part.name)),
    )
    for index, part in enumerate(steady):
        shares = sum(other.share for other in steady[index:]) + (parts.SHARE_OF_TURNS if turns else 0)
        run.part(part, time.time() + max(0.0, deadline - time.time()) * part.share / shares)
    for part in turns:
        if part == turns[0] or deadline - time.time() >= LEAST_SECONDS_OF_TURN:
            run.part(part, deadline)
        else:
            run.leave(part)


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group()
    of_rest = [part.name for part in parts.of_rest()]
    what.add_argument("--rest", nargs="*", choices=of_rest, metavar="PART", help=argparse.SUPPRESS)
    what.add_argument("--all", action="store_true", help=argparse.SUPPRESS)
    what.add_argument("--part", choices=sorted(parts.BY_NAME), help=argparse.SUPPRESS)
    what.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=MINUTES_OF_REST, help=argparse.SUPPRESS)
    options, more = parser.parse_known_args()
    if more and not options.part and not options.row:
        parser.error(f"arguments for ctest or pytest go with --part: {' '.join(more)}")
    os.chdir(digests.ROOT)
    parts.set_environment()
    begin = time.time()
    if options.row:
        sys.exit(parts.run_row(options.row, more))
    run = Run(everything=options.all or options.part is not None)
    if options.part:
        run.part(parts.BY_NAME[options.part], arguments=more)
    elif options.all:
        for part in parts.of_main() + parts.of_rest():
            run.part(part)
    elif options.rest is not None:
        rest(run, options.rest, begin + options.minutes * 60)
    else:
        for part in parts.of_main():
            run.part(part, part.minutes and time.time() + part.minutes * 60)
    sys.exit(0 if run.report() else 1)


if __name__ == "__main__":
    main()
