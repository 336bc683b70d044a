# SPDX-License-Identifier: Apache-2.0
"""Four jobs that stand still, and what is said of each by four voices: the text of the job's own timeout, ccom-status,
ccom-top --once, and ccom-trace of what the ranks recorded. Each names the rank, the line and the reason.

CCOM_TEST_SHOW=1 prints what the voices say.
"""

import dataclasses
import json
import os
import re
import subprocess
import tempfile

from harness.case import SOURCES, parameters
from harness.processes import PATIENCE, until
from harness.world import World
from support import PROGRAM, STATUS, TOP, TRACE, TestCase

LATE = ("--late", "0.5")
RATE = 20e6 / 8  # bytes per second of the slow link


def place(function):
    """As texts name it: the line that is marked so in the program's source."""
    with open(SOURCES / "tests" / "jobs" / "seen_program.cc", encoding="utf-8") as source:
        (line,) = [number for number, text in enumerate(source, 1) if f"// {function}'s line" in text]
    return rf"seen_program\.cc:{line} \({function}\)"


STEP, EVALUATE, PULL = place("train_step"), place("evaluate"), place("pull")


@dataclasses.dataclass
class Voices:
    timeouts: dict  # by rank
    seen: dict      # ccom-status --json, of the job
    status: str
    top: str
    trace: str = ""


def run_here(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout


def own_part(seen, pids):
    """Of these processes alone: other jobs of the user may run beside the test."""
    mine = [each for each in seen["communicators"] if any(rank["pid"] in pids for rank in each["seen"])]
    numbers = {each["communicator"] for each in mine}
    return {"communicators": mine,
            "late": [late for late in seen["late"] if late["communicator"] in numbers],
            "cycles": [cycle for cycle in seen["cycles"] if all(place["communicator"] in numbers for place in cycle)],
            "busy_links": [link for link in seen["busy_links"] if link["pid"] in pids]}


def listen(pids, is_seen, run):
    """What the tools say while the job stands still, as is_seen() of the JSON; None if it has timed out meanwhile."""
    def look():
        return own_part(json.loads(run(STATUS, "--json", *LATE)), pids)

    def stands(seen):
        return seen["communicators"] and not any(each["error"] for each in seen["communicators"])

    seen = until(look, lambda found: is_seen(found) or not stands(found))
    voices = Voices({}, seen, run(STATUS, *LATE), run(TOP, "--once", "-i", "0.3", *LATE))
    after = look()
    return voices if is_seen(after) and stands(after) else None


def show(name, voices):
    if os.environ.get("CCOM_TEST_SHOW"):
        print(f"\n===== {name}", *voices.timeouts.values(), "", voices.status, voices.top, voices.trace, sep="\n")
    return voices


class Scenarios(TestCase):
    def voices_of(self, what, ranks, transport, cause, is_seen, waiting):
        """cause(job) makes the job stand still, in which the ranks `waiting` time out."""
        def run(folder, seconds):
            job = self.job(what, ranks, CCOM_RECORD=folder, CCOM_TIMEOUT_MS=str(seconds * 1000), CCOM_DEAD_MS="100000",
                           CCOM_TRANSPORT=transport)
            cause(job)
            return job, listen(job.pids, is_seen, run_here)

        return self.heard(f"{what}, {transport}", run, waiting, (4, 12, 36))

    def heard(self, name, run, waiting, times):
        """A machine that is too slow to look before the job times out is given more time."""
        for seconds in times:
            with tempfile.TemporaryDirectory() as folder:
                job, voices = run(folder, seconds)
                if voices is not None:
                    voices.timeouts = dict(zip(waiting, job.wait_for("failed", ranks=waiting)))
                    job.end()
                    voices.trace = run_here(TRACE, folder)
                    return show(name, voices)
                job.end()
        raise AssertionError("the job times out before the tools have looked")

    def all_say(self, voices, *expected):
        """Each is (the voices, a pattern)."""
        for names, pattern in expected:
            for name in names.split():
                texts = voices.timeouts.values() if name == "timeout" else [getattr(voices, name)]
                for text in texts:
                    self.assertRegex(text, re.compile(pattern), name)

    @parameters("shm", "tcp", "ofi")
    def test_a_rank_that_sleeps_in_user_code(self, transport):
        def is_seen(seen):
            return any((late["rank"], late["waiting"]) == (3, [0, 1, 2]) for late in seen["late"])

        def sleeps(job):
            job.wait_for("evaluates", ranks=[3])

        voices = self.voices_of("late", 4, transport, sleeps, is_seen, range(3))
        self.all_say(
            voices,
            ("timeout", rf"not yet in this call: rank 3; rank 3 is at {EVALUATE}, not in a call, for "),
            ("timeout", rf"; ranks 0-2 are at {STEP} in allreduce #1000"),
            ("status top", r"\(training\): rank 3 is .*not in a call.*; ranks 0-2 wait for it for "),
            ("status", rf"ranks 0-2 are at {STEP} in allreduce #1000"),
            ("top", rf"\n +0 .* allreduce #1000 at {STEP}\n"),
            ("trace", rf"> #1000  allreduce .* at {STEP}   the first in which ranks differ\n"),
            ("trace", r'ended with "timed out" after [^\n]*, waited for rank 3\n'),
            ("trace", rf"\n +rank 3: has not called it: in no call for .* s, last in #999 at {STEP}\n"),
            ("trace", r"\n  rank 3 made the others wait .*; it has not come to the last one\n"))

    @parameters("shm", "tcp", "ofi")
    def test_a_stopped_rank(self, transport):
        def is_seen(seen):
            return any(late["rank"] == 3 and "has not run for" in late["reason"] for late in seen["late"])

        def stop(job):
            job.stop(3)

        voices = self.voices_of("calls", 4, transport, stop, is_seen, range(3))
        (late,) = [late for late in voices.seen["late"] if late["rank"] == 3]
        self.assertEqual(late["waiting"], [0, 1, 2])
        self.assertRegex(late["reason"], STEP)
        self.assertEqual(voices.seen["busy_links"], [])
        self.all_say(
            voices,
            ("timeout", rf"rank 3 is [^;]*{STEP}[^;]*, and the process has not run for [\d.]+ s"),
            ("status top", rf"\(training\): rank 3 is .*{STEP}.*, and the process has not run for [\d.]+ s; "
                           r"ranks 0-2 wait for it for "),
            ("trace", rf" at {STEP}"),
            ("trace", r"\n +ranks? [^\n]*, waited for rank 3\n"),
            ("trace", r"\n +rank 3: [^\n]*; its process has not run for [\d.]+ s\n"))

    @parameters("shm", "tcp", "ofi")
    def test_a_message_that_does_not_come(self, transport):
        def is_seen(seen):
            return any((late["rank"], late["waiting"]) == (1, [0]) for late in seen["late"])

        voices = self.voices_of("receive", 2, transport, lambda job: None, is_seen, [0])
        (waiting,) = [each for each in voices.seen["communicators"][0]["seen"] if each["rank"] == 0]
        self.assertEqual((waiting["state"], waiting["waits_for"], waiting["messages"]), ("message", 1, 1))
        receive = rf"at {PULL} in receive from rank 1 \(tag 7, 1024 bytes\)"
        self.all_say(
            voices,
            ("timeout", rf"rank 0 is {receive}, for [\d.]+ s now; rank 1 is at {EVALUATE}, not in a call, for "),
            ("status top", r"\(training\): rank 1 is .*not in a call.*; rank 0 waits for it for "),
            ("status", rf"rank 0 is {receive}, for "),
            ("top", rf"\n +0 .* 1 [\d.]+ m?s +{receive}\n"))

    @parameters("shm", "tcp", "ofi")
    def test_a_deadlock_of_two_communicators(self, transport):
        def is_seen(seen):
            return bool(seen["cycles"])

        voices = self.voices_of("deadlock", 2, transport, lambda job: None, is_seen, range(2))
        for rank, name in ((0, "part"), (1, "whole")):
            text = voices.timeouts[rank]
            self.assertRegex(text, rf": {name}: rank {rank} timed out waiting for rank {1 - rank}; ")
            self.assertRegex(text, rf"rank {rank} is at {STEP} in allreduce #")
        # Rank 0 began first, so it times out first, and may have left its call when rank 1 does.
        self.assertRegex(voices.timeouts[0],
                         rf"rank 1 is in allreduce #\d+ of communicator \w+ \(whole\) at {STEP}, "
                         r"not in a call of this communicator, for [\d.]+ s now")
        side = r"rank {0} of communicator \w+ \({1}\) is at {2} in allreduce #\d+ and waits for rank {3}"
        sides = [side.format(0, "part", STEP, 1), side.format(1, "whole", STEP, 0)]
        self.all_say(
            voices,
            *(("status top", r"\ndeadlock: [^\n]*" + each) for each in sides),
            ("trace", rf"\nwhole: (?s:.)*\n +rank 0: has not called it: was in allreduce #1 of part at {STEP}, "
                      r'which ended with "timed out" after [\d.]+ s, waited for rank 1\n'),
            ("trace", r"\npart: (?s:.)*\n +rank 1: has not called it: "
                      rf"was in allreduce #\d+ of whole at {STEP}, "
                      r'which ended with "timed out" after [\d.]+ s, waited for rank 0\n'))

    @parameters("shm,tcp", "shm,ofi")
    def test_a_slow_link_between_two_hosts(self, transport):
        world = self.enterContext(World(4, 2, "namespaces"))
        world.hosts.shape(1, f"{int(RATE * 8)}bit")
        voices = self.voices_of_a_slow_link(world, transport)
        self.assertEqual(voices.seen["late"], [])
        links = [link for link in voices.seen["busy_links"] if link["remote"] == world.hosts.address(1)]
        self.assertIn(([0], world.hosts.address(0)), [(link["ranks"], link["local"]) for link in links])
        self.assertLess(sum(link["bytes_per_second"] for link in links), 2 * RATE)
        for rank, text in voices.timeouts.items():  # what ranks of the other host do has to pass the same link
            here = "0 and 1" if rank < 2 else "2 and 3"
            self.assertRegex(
                text, rf"timed out waiting for rank \d; ranks (0-3|{here}) .*are at {STEP} in allreduce #1 ")
        self.all_say(
            voices,
            ("status top", r"\(training\): rank 2 made the others wait \d+ % of the time(; it may have .*)?\n"),
            ("status top", r"\nthe connection of rank 0 to 10\.77\.0\.2 had data on its way for \d+ % of the "),
            ("status", rf"ranks 0-3 .*are at {STEP} in allreduce #1"),
            ("top", rf"\n +[0-3] .* allreduce #1 at {STEP}\n"),
            ("top", r"\n +\d+ 0 +10\.77\.0\.1 +10\.77\.0\.2 +\d+ +[\d.]+ \wB +[\d.]+ \wB +\d+ % "),
            ("trace", rf"  #1  allreduce .* at {STEP}\n"),
            ("trace", r'ranks? 0[^\n]*: ended with "timed out" after [\d.]+ s, waited for rank 2\n'))

    def voices_of_a_slow_link(self, world, transport):
        def is_seen(seen):
            """Not while ranks begin: the link is full."""
            return any(link["ranks"] == [0] and link["bytes_per_second"] > RATE / 2 for link in seen["busy_links"])

        def run(folder, seconds):
            job = world.start([PROGRAM, "large"], CCOM_RECORD=folder, CCOM_TIMEOUT_MS=str(seconds * 1000),
                              CCOM_DEAD_MS="100000", CCOM_TRANSPORT=transport)
            job.wait_for("ready")
            return job, listen(job.pids, is_seen, lambda *line: world.hosts.run(0, line).stdout)

        return self.heard(f"slow link, {transport}", run, range(4), (4, 12))  # a call takes 27 s
