#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rule by which tests are chosen leaves no case out for long, whatever changes and whichever commits are run: 200
commits simulated. The same check finds what rules by the day of the year leave out. And what keeps skips and lost tests
from being silent."""

import contextlib
import dataclasses
import io
import itertools
import os
import pathlib
import random
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import choice
import ctest_part
import main
import parts
import skips
from choice import Case, Record
from ledger import Ledger
from result import Result

RUNS = 200
WINDOW = 12


@dataclasses.dataclass
class World:
    """Cases with lengths; commits that change what some of them depend on."""

    seconds: dict
    changes: callable  # commit's number -> names whose digest it changes
    stride: int = 1  # every how many commits there is a run

    def digests_at(self, commit):
        versions = dict.fromkeys(self.seconds, 0)
        for number in range(commit + 1):
            for name in self.changes(number):
                versions[name] = number
        return versions


def simulate(world, budget, has_ledger=True, runs=RUNS):
    """By run: what was executed, and what was due by its digest; each run ends when its budget is spent."""
    records, executed, due = {}, [], []
    versions = dict.fromkeys(world.seconds, 0)
    for run in range(1, runs + 1):
        for commit in range((run - 1) * world.stride + 1, run * world.stride + 1):
            for name in world.changes(commit):
                versions[name] = commit
        cases = [Case(name, f"v{versions[name]}") for name in world.seconds]
        due.append({case.name for case in cases if records.get(case.name, Record()).digest != case.digest})
        done, spent = set(), 0.0
        for case in choice.choose(cases, records if has_ledger else {}, f"commit {run * world.stride}").todo:
            if spent >= budget:
                break
            done.add(case.name)
            spent += world.seconds[case.name]
            records[case.name] = Record(case.digest, run, world.seconds[case.name])
        executed.append(done)
    return executed, due


def left_out(executed, names, window=WINDOW):
    """Cases that some `window` runs in a row have not executed."""
    missing = set()
    for first in range(len(executed) - window + 1):
        missing |= names - set().union(*executed[first : first + window])
    return missing


def lengths(count, seed):
    draw = random.Random(seed)
    return {f"room.Suite.Case{i}": draw.choice([0.01, 0.1, 0.5, 2, 10, 30]) for i in range(count)}


def by_the_day(cases, turns=6, parts=3, days=(1, 4)):
    """Two rules by the date that resonate: a suite has two days in six, on each a third of its cases by the day."""

    def executed(day):
        return {name for i, name in enumerate(cases) if day % turns in days and i % parts == day % parts}

    return executed


class Rule(unittest.TestCase):
    patterns = {
        "nothing": lambda names: lambda commit: (),
        "everything, always": lambda names: lambda commit: names,
        "everything, every third commit": lambda names: lambda commit: names if commit % 3 == 0 else (),
        "one half, always": lambda names: lambda commit: names[::2],
        "another sixth each time": lambda names: lambda commit: names[commit % 6 :: 6],
    }

    def test_every_case_runs_in_any_twelve_runs(self):
        for seed, (title, pattern), stride in itertools.product((1, 2), self.patterns.items(), (1, 6, 7)):
            seconds = lengths(200, seed)
            names = list(seconds)
            # Time for the turn, and for little more: as on a slow machine.
            budget = sum(seconds.values()) / choice.SHARE_OF_TURN + max(seconds.values())
            executed, _ = simulate(World(seconds, pattern(names), stride), budget)
            with self.subTest(changes=title, stride=stride, seed=seed):
                self.assertEqual(left_out(executed, set(names)), set())

    def test_what_has_changed_is_never_left_out(self):
        seconds = lengths(300, 3)
        names = list(seconds)
        draw = random.Random(4)
        changed = {commit: draw.sample(names, 12) for commit in range(RUNS + 1)}
        executed, due = simulate(World(seconds, lambda commit: changed[commit]), budget=float("inf"))
        for run in range(RUNS):
            self.assertEqual(due[run] - executed[run], set(), f"run {run}")
        self.assertLess(sum(map(len, executed)) / RUNS, 0.4 * len(names))  # most are spared

    def test_what_has_changed_comes_soon_where_time_is_short(self):
        seconds = lengths(300, 5)
        names = list(seconds)
        budget = sum(seconds.values()) / 4
        executed, due = simulate(World(seconds, lambda commit: names[commit % 20 :: 20]), budget)
        for run in range(20, RUNS - 1):
            self.assertEqual(due[run] - executed[run] - executed[run + 1], set(), f"run {run}")

    def test_without_a_ledger_all_cases_come_and_no_two_are_bound_to_each_other(self):
        seconds = {f"case{i}": 1.0 for i in range(120)}
        names = list(seconds)
        for stride in (1, 2, 3, 6, 12):
            executed, _ = simulate(World(seconds, lambda commit: (), stride), budget=40.0, has_ledger=False)
            with self.subTest(stride=stride):
                self.assertEqual(set().union(*executed), set(names))
                for name in names:
                    self.assertAlmostEqual(sum(name in run for run in executed) / RUNS, 1 / 3, delta=0.15)
                # A third of runs has the one, a ninth both: not none, and not all.
                for one, other in itertools.combinations(names[:30], 2):
                    both = sum(one in run and other in run for run in executed)
                    self.assertTrue(3 < both < 50, (one, other, both))

    def test_the_check_finds_what_days_leave_out(self):
        names = [f"torch{i}" for i in range(30)]
        rule = by_the_day(names)
        executed = [rule(day) for day in range(1, RUNS + 1)]
        self.assertEqual(len(left_out(executed, set(names), window=RUNS)), 20)  # for ever
        rule = by_the_day(names, days=(1, 2))
        self.assertNotEqual(left_out([rule(day) for day in range(1, RUNS + 1)], set(names)), set())

    def test_what_has_changed_or_failed_comes_before_what_never_ran(self):
        cases = [Case(f"case{i}", "now") for i in range(60)]
        records = {"case7": Record("before", 5, 1.0), "case8": Record("", 5, 1.0), "case9": Record("now", 5, 1.0)}
        chosen = choice.choose(cases, records, "commit")
        self.assertEqual({case.name for case in chosen.due[:2]}, {"case7", "case8"})
        self.assertEqual([case.name for case in chosen.spared], ["case9"])

    def test_a_failed_case_is_due_again(self):
        cases = [Case(f"case{i}", "now") for i in range(20)]
        records = {case.name: Record("now", 5, 1.0) for case in cases}
        records["case7"] = Record("", 5, 1.0)
        self.assertIn("case7", [case.name for case in choice.choose(cases, records, "commit").todo])

    def first_turns(self, ledger_of):
        """By run, which of the parts that take turns came first, where no time is left for a second one."""
        first = []

        class Run:
            def __init__(self, number):
                self.ledger, self.commit = ledger_of(number), str(number)

            def part(self, part, _deadline):
                if part in parts.TURNS:
                    first.append(part.name)
                    self.ledger.begin(part.name)

            def leave(self, part):
                pass

        for number in range(RUNS):
            main.rest(Run(number), [], time.time() + main.LEAST_SECONDS_OF_TURN - 1)
        return first

    def test_parts_that_need_minutes_come_by_turns(self):
        turns = {part.name for part in parts.TURNS}
        self.assertEqual(turns, {"tsan", "fuzz", "install", "mutants", "soak"})
        with tempfile.TemporaryDirectory() as folder:
            kept = Ledger(pathlib.Path(folder, "kept"))
            first = self.first_turns(lambda _: kept)
        self.assertEqual(len(first), RUNS)
        for begin in range(RUNS - len(turns) + 1):
            self.assertEqual(set(first[begin : begin + len(turns)]), turns)
        # Every second fresh machine, and every third: the commit decides.
        first = self.first_turns(lambda _: Ledger(":memory:"))
        for stride in (1, 2, 3):
            self.assertEqual(set(first[::stride][:40]), turns)

    def test_the_ledger_keeps_what_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.sqlite"
            ledger = Ledger(path)
            self.assertEqual([ledger.begin("release"), ledger.begin("torch"), ledger.begin("release")], [1, 1, 2])
            ledger.save("release", 2, [("a", "digest", 1.5), ("b", "", 0.5)])
            self.assertEqual(Ledger(path).records("release"), {"a": Record("digest", 2, 1.5), "b": Record("", 2, 0.5)})
            self.assertEqual(Ledger(path).records("torch"), {})


class Silence(unittest.TestCase):
    def report_of(self, outcome, problems=()):
        """What a run says in the end whose only case had this outcome."""

        class Part:
            name = "release"

            @staticmethod
            def run(_run, _deadline, _arguments):
                case = Case("plan.Ring.Sums", "now")
                return parts.Outcome([Result(case, outcome, 0.1)], problems=list(problems))

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            run = main.Run(ledger=Ledger(pathlib.Path(folder) / "ledger.sqlite"))
            run.part(Part)
            return run.report(), said.getvalue()

    def test_a_run_with_a_case_that_was_skipped_unexpectedly_fails(self):
        self.assertEqual(self.report_of("passed")[0], True)
        for outcome, problems in (("failed", ()), ("skipped", ()), ("passed", ["no test was found"])):
            good, said = self.report_of(outcome, problems)
            self.assertFalse(good)
            self.assertRegex(said, r"\b1 failed\b")

    def test_a_skip_must_be_expected(self):
        rules = skips.read(
            "# comment\nrelease  namespaces_*  no-root  needs namespaces\ntorch *newer* anywhere needs torch 2.14\n"
        )
        root = os.geteuid() == 0
        self.assertEqual(skips.is_expected("release", "namespaces_far", rules), not root)
        self.assertTrue(skips.is_expected("torch", "tests/torch/test_newer_torch.py::test_x", rules))
        self.assertFalse(skips.is_expected("release", "plan.Ring.Sums", rules))
        with self.assertRaises(SystemExit):
            skips.read("release plan.* on-tuesdays because")
        with self.assertRaises(SystemExit):
            skips.read("release plan.* anywhere")

    def test_a_line_of_a_case_that_is_gone_is_a_problem(self):
        rules = skips.read(
            "* bootstrap.Secret.* no-root a user\n*san *.Fork.* anywhere threads\ntorch *newer* anywhere torch 2.14\n"
        )
        of_ctest = parts.of_ctest()
        self.assertEqual(skips.stale(["bootstrap.Secret.Is", "base.Fork.Ends"], of_ctest, rules), [])
        self.assertEqual(skips.stale(["a.Secret.Is", "base.Fork.Ends"], of_ctest, rules), ["* bootstrap.Secret.*"])
        self.assertEqual(skips.stale(["bootstrap.Secret.Is"], of_ctest, rules), ["*san *.Fork.*"])

    def test_the_list_can_be_read(self):
        self.assertGreater(len(skips.expected()), 0)

    def test_cases_of_the_sources_are_known(self):
        text = "TEST(Ring, Sums) {}\nTEST_P(Kills,\n       OfAll) {}\nTYPED_TEST(Types, Are) {}\n// TEST(Not, This)\n"
        self.assertEqual(skips.declared_cases(text), {("Ring", "Sums"), ("Kills", "OfAll"), ("Types", "Are")})
        known = ["plan.Ring.Sums", "faults.Every/Kills.OfAll/shm", "x.Types/0.Are"]
        self.assertEqual(
            {match.groups() for name in known if (match := skips.KNOWN.match(name))}, skips.declared_cases(text)
        )

    def names_run(self, *asked):
        """Of tests with these numbers and names, in a build folder that has a, b and c."""
        with tempfile.TemporaryDirectory() as build:
            tests = "".join(f'add_test({name} "true")\n' for name in "abc")
            pathlib.Path(build, "CTestTestfile.cmake").write_text(tests, encoding="ascii")
            found = [ctest_part.Test(number, name, (), Case(name, "")) for number, name in asked]
            return sorted(result.case.name for result in ctest_part.Batch(build, 1).run(found, time.time() + 60))

    def test_all_that_is_asked_of_ctest_runs(self):
        self.assertEqual(self.names_run((3, "c")), ["c"])
        self.assertEqual(self.names_run((3, "c"), (1, "a")), ["a", "c"])

    def test_a_build_that_is_configured_while_its_tests_run_ends_the_run(self):
        with self.assertRaisesRegex(SystemExit, "was configured again"):
            self.names_run((1, "b"))

    def built_in_time(self, steps, part=parts.ASAN):
        """What cases can start where so many steps of a build end before its deadline. Two programs are pure."""
        linked = ["tools/ccom-run", "src/libccom.so", *(f"tests/test_{number}" for number in range(12))]
        # With what gtest_discover_tests makes beside a program.
        edges = "".join(f"build {path} | {path}[1]_tests.cmake: CXX_EXECUTABLE_LINKER__x\n" for path in linked)
        with (
            tempfile.TemporaryDirectory() as folder,
            unittest.mock.patch.object(parts, "build", side_effect=[True] * steps + [False]) as build,
        ):
            pathlib.Path(folder, "build.ninja").write_text(
                f"rule CXX_EXECUTABLE_LINKER__x\n  command = true\n{edges}build all: phony\n", encoding="ascii"
            )
            tests = ""
            for name in ("script", "test_0_NOT_BUILT", "test_1_NOT_BUILT", *(f"{n}.Suite.Case" for n in range(2, 12))):
                label = "pure" if name in ("test_1_NOT_BUILT", "2.Suite.Case") else "threads"
                tests += f"add_test({name} true)\nset_tests_properties({name} PROPERTIES LABELS {label})\n"
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(tests, encoding="ascii")
            run = main.Run(ledger=Ledger(pathlib.Path(folder, "ledger")))
            built = part.build_programs(run, folder, time.time() + 60)
            asked = [path for call in build.call_args_list for path in call.args[1]]
            self.assertEqual(len(asked), len(set(asked)))
            if steps == 2:
                programs = {path for path in linked[2:] if os.path.basename(path) in built}
                self.assertEqual(set(asked), programs | set(linked[:2]))
            return built

    def test_a_case_whose_program_was_not_built_in_time_is_left(self):
        self.assertEqual(self.built_in_time(0), set())
        self.assertEqual(len(self.built_in_time(1)), 8)
        self.assertEqual(self.built_in_time(2), {"", *(f"test_{number}" for number in range(12))})

    def test_programs_of_which_a_part_has_no_case_are_not_built(self):
        self.assertEqual(
            self.built_in_time(2, parts.TSAN), {"", "test_0", *(f"test_{number}" for number in range(3, 12))}
        )

    def test_what_ctest_says_of_a_case_is_read(self):
        said = {
            "1/3 Test   #3: t3 ...............................***Skipped   0.00 sec": ("3", "t3", "***Skipped"),
            " 2/3 Test #5: t5 ...............................***Failed    0.10 sec": ("5", "t5", "***Failed"),
            "10/12 Test #51: a.B/1.C/x=1 .....   Passed    1.05 sec": ("51", "a.B/1.C/x=1", "Passed"),
            "2/3 Test #6: t .............***Exception: SegFault  0.00 sec": ("6", "t", "***Exception: SegFault"),
            "2/3 Test #7: t .............***Not Run (Disabled)   0.00 sec": None,
        }
        for line, expected in said.items():
            match = ctest_part.RESULT_LINE.match(line)
            if expected:
                self.assertEqual((match.group(1), match.group(2), match.group(3).strip()), expected)


if __name__ == "__main__":
    unittest.main()
