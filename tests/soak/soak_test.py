# SPDX-License-Identifier: Apache-2.0
"""Everything at once, on one host, over TCP, and on two hosts: collectives of all kinds with groups, operators,
messages and splits against the oracle (soak_program.cc); a communicator that shrinks, grows and loses ranks
(changing_program.cc); jobs of which one rank is killed or stopped, or whose hosts lose each other; and tools that watch
all of them.

Nothing may be wrong, hang, or grow. Each place takes CCOM_TEST_SECONDS: 200, with CCOM_TEST_LONG=1 1,200.
CCOM_TEST_SEED chooses the calls and the faults.
"""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import time
import urllib.request

from harness.case import TestCase, free_port, parameters, program
from harness.processes import PATIENCE, Failed
from harness.world import World

SOAK, CHANGING, ENDLESS = (program(name) for name in ("soak_program", "changing_program", "rank_program"))
STATUS, TOP, TRACE = (program(name) for name in ("ccom-status", "ccom-top", "ccom-trace"))
SECONDS = int(os.environ.get("CCOM_TEST_SECONDS") or (1200 if os.environ.get("CCOM_TEST_LONG") else 200))
MOST_BYTES = 4 << 20
DEAD_MS = 3000
NOTICED_WITHIN = 30  # all processors are busy
AT_THE_END = 180


def places(place, ranks):
    """Arguments of World, and the environment of the ranks of a job."""
    if place == "two_hosts":
        return (ranks, 2, "namespaces"), {}
    if place == "tcp":
        return (ranks, ranks), {"CCOM_TRANSPORT": "tcp"}
    return (ranks,), {}


def is_json(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


class Everything(TestCase):
    def world(self, place, ranks):
        arguments, environment = places(place, ranks)
        return self.enterContext(World(*arguments)), environment

    @parameters("shm", "tcp", "two_hosts")
    def test_nothing_is_wrong_hangs_or_grows_on(self, place):
        seed = int(os.environ.get("CCOM_TEST_SEED") or random.randrange(1_000_000))
        print(f"{place}, seed {seed}, {SECONDS} s", flush=True)
        end, folder = time.time() + SECONDS, self.enterContext(tempfile.TemporaryDirectory())
        records = pathlib.Path(folder, "records")
        records.mkdir()
        world, environment = self.world(place, 4)
        port = free_port() if place == "shm" else None  # elsewhere each rank is the first of its host
        metrics = f"tcp://127.0.0.1:{port}" if port else f"{folder}/metrics-%p"
        calls = world.start([SOAK, str(seed), str(SECONDS), str(MOST_BYTES), "2"], **environment,
                            CCOM_RECORD=str(records), CCOM_METRICS=metrics)
        calls.wait_for("ready")
        world, environment = self.world(place, 6)
        changes = world.start([CHANGING, folder, str(int(end)), str(seed)], **environment)
        faults, problems = [], []
        looks = threading.Thread(target=self.watch, args=(end, port, problems))
        looks.start()
        try:
            chance = random.Random(seed)
            while time.time() < end - NOTICED_WITHIN or not faults:
                faults.append(self.one_fault(place, chance))
        finally:
            looks.join()
        self.assertEqual(problems, [])
        self.is_over(calls, f"{place}: collectives")
        self.is_over(changes, f"{place}: changes")
        for rank in calls.ranks:
            self.assertRegex(calls.output(rank), r"(?m)^done \d+ \d+ 0$")
        text = subprocess.run([TRACE, "-n", "3", str(records)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(text.returncode, 0, text.stderr)
        print(f"{place}: {'; '.join(calls.output(0).splitlines()[1:])}; {changes.output(0).splitlines()[-1]}; faults: "
              + ", ".join(f"{faults.count(kind)} {kind}" for kind in sorted(set(faults))), flush=True)

    def is_over(self, job, what):
        codes = [end.code for end in job.wait(AT_THE_END)]
        bad = [line for rank in job.ranks for line in job.output(rank).splitlines()
               if line.startswith(("wrong", "failed", "grew", "init"))]
        if any(codes) or bad:
            raise Failed(f"{what}: codes {codes}, {bad}\n{job.report()}")

    def one_fault(self, place, chance):
        """One rank, or one of two hosts, is lost in the middle of calls; those that are left name it and no other."""
        kind = chance.choice(["kill", "stop", "partition"] if place == "two_hosts" else ["kill", "stop"])
        world, environment = self.world(place, 4)
        job = world.start([ENDLESS, "loop", str(chance.choice([64, 65536, 1 << 20])), "cycle"], **environment,
                          CCOM_DEAD_MS=str(DEAD_MS))
        job.wait_for("ready")
        time.sleep(chance.random())
        victim = chance.randrange(4)
        if kind == "partition":
            world.hosts.partition([0], [1])
            for rank, line in enumerate(job.wait_for("failed", NOTICED_WITHIN)):
                self.assertRegex(line, r"^failed 6 \[2(,3)?\]|^failed 6 \[3\]" if rank < 2
                                 else r"^failed 6 \[0(,1)?\]|^failed 6 \[1\]")
        else:
            (job.kill if kind == "kill" else job.stop)(victim)
            left = [rank for rank in range(4) if rank != victim]
            for line in job.wait_for("failed", NOTICED_WITHIN, left):
                self.assertTrue(line.startswith(f"failed 6 [{victim}]"), line)
        if kind == "stop":
            job.resume(victim)
            job.wait_for("failed", NOTICED_WITHIN, [victim])
        self.assertEqual([end.rank for end in job.wait(NOTICED_WITHIN) if end.code is None], [], "ranks that hang")
        return kind

    def watch(self, end, port, problems):
        """Until the end. A tool that crashes, or says what nobody can read, is a problem."""
        top = subprocess.Popen([TOP, "--json", "-i", "1"], stdout=subprocess.PIPE, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(top.stdout))
        reader.start()
        try:
            while time.time() < end - 5:
                said = subprocess.run([STATUS, "--json"], capture_output=True, text=True, timeout=PATIENCE)
                if said.returncode not in (0, 1, 2, 4):
                    problems.append(f"ccom-status ended with {said.returncode}: {said.stderr}")
                json.loads(said.stdout)
                if port:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
                        if not answer.read().endswith(b"# EOF\n"):
                            problems.append("the metrics have no end")
                time.sleep(2)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            problems.append(repr(error))
        finally:
            if top.poll() is not None:
                problems.append(f"ccom-top ended with {top.returncode}")
            top.terminate()
            reader.join()
        problems += [f"ccom-top said {line}" for line in lines if not is_json(line)]
        if not lines:
            problems.append("ccom-top has said nothing")
