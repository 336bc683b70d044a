# SPDX-License-Identifier: Apache-2.0
"""Jobs that start and end while ccom-top looks, some of them killed: it never crashes, and its JSON is always whole.
Jobs of another user are shown to nobody else, to root neither (only as root, with setpriv)."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness.world import World
from support import PROGRAM, STATUS, TOP, TestCase, of_job, status

JOBS = 100
STRANGER = 12345


def library_of(program):
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        if "libccom.so" in line:
            return line.split("=>")[1].split()[0]
    raise AssertionError("it is not linked with libccom")


class Churn(TestCase):
    def test_a_hundred_jobs_start_and_end_while_it_looks(self):
        seed = int(os.environ.get("CCOM_TEST_SEED", random.randrange(1 << 30)))
        print("seed", seed, flush=True)
        chance = random.Random(seed)
        top = subprocess.Popen([TOP, "--json", "-i", "0.05"], stdout=subprocess.PIPE, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(top.stdout))
        reader.start()
        world = self.enterContext(World(2))
        running = []
        for number in range(JOBS):
            is_killed = number % 5 == 0
            running.append((world.start([PROGRAM, "calls" if is_killed else "short"]), is_killed))
            while len(running) > 3:
                self.finish(*running.pop(0), chance)
        for job, is_killed in running:
            self.finish(job, is_killed, chance)
        self.assertIsNone(top.poll(), "ccom-top has ended")
        top.send_signal(signal.SIGTERM)
        self.assertEqual(top.wait(60), -signal.SIGTERM)
        reader.join()
        top.stdout.close()
        if not lines[-1].endswith("\n"):
            lines.pop()
        looks = [json.loads(line) for line in lines]
        names = {each["name"] for look in looks for each in look["communicators"]}
        self.assertTrue(names & {"short", "training"}, f"{len(looks)} looks saw {names}")
        for look in looks:
            for each in look["communicators"]:
                self.assertTrue(all(0 <= rank["rank"] < each["ranks"] for rank in each["seen"]))

    def finish(self, job, is_killed, chance):
        if is_killed:
            time.sleep(chance.random() * 0.3)  # at any time of its life
            job.end()
        else:
            job.succeed()

    def test_jobs_of_other_users_are_not_shown(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        stranger = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "--inh-caps=-all"]
        with tempfile.TemporaryDirectory() as folder:  # another user cannot run programs where they are
            os.chmod(folder, 0o755)
            program, status_program = (shutil.copy(each, folder) for each in (PROGRAM, STATUS))
            shutil.copy(library_of(PROGRAM), folder)
            theirs_start = [*stranger, "env", f"LD_LIBRARY_PATH={folder}"]
            theirs = self.job("calls", 2, program=[*theirs_start, program])
            ours = self.job("calls", 2)
            seen = status()[1]
            self.assertEqual(len(of_job(seen, ours)), 1)
            self.assertEqual(of_job(seen, theirs), [])
            seen = status(prefix=theirs_start, program=status_program)[1]
            self.assertEqual(len(of_job(seen, theirs)), 1)
            self.assertEqual(of_job(seen, ours), [])
