# SPDX-License-Identifier: Apache-2.0
"""What the harness promises: nothing is left of a test that has been killed, whatever it had started."""
import os
import shutil
import signal
import subprocess
import sys
import textwrap

from harness.case import TestCase, parameters
from harness.namespaces import Hosts
from harness.processes import Job, has_ended, marked, until
from harness.world import World

LISTEN = "import socket; s = socket.create_server(('', 9)); print('listens', flush=True); [s.accept() for _ in 'all']"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 9), 1); print('there')"
HOLD = """
    import time
    from harness.world import World
    with World(4, 2, "namespaces") as world:
        job = world.start(["sh", "-c", "echo begun; sleep 600 & wait"])
        job.wait_for("begun")
        print(job.folder, *(keeper.pid for keeper in world.hosts.kept.values()), *job.pids, flush=True)
        time.sleep(600)
"""


class Leftovers(TestCase):
    def held(self, prefix=()):
        """A test with a world, the folder of its job, and its processes."""
        command = [*prefix, sys.executable, "-c", textwrap.dedent(HOLD)]
        test = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.addCleanup(test.wait)
        self.addCleanup(test.kill)
        folder, *pids = test.stdout.readline().split()
        test.stdout.close()
        return test, folder, pids

    @parameters("SIGKILL", "SIGTERM", "SIGINT")
    def test_nothing_is_left_of_a_test_that_gets(self, name):
        with Hosts(1):
            pass  # or this is skipped
        test, folder, pids = self.held()
        test.send_signal(getattr(signal, name))
        test.wait(60)
        until(lambda: [pid for pid in pids if not has_ended(pid)], lambda left: not left)
        if name != "SIGKILL":  # after which the next job anywhere removes it
            self.assertFalse(os.path.exists(folder))
        with Job():
            self.assertFalse(os.path.exists(folder))
            until(lambda: [pid for pid, mark in marked() if mark.startswith(f"{test.pid:08}-")], lambda left: not left)


    def test_a_job_in_another_pid_namespace_is_left_alone(self):
        """Although its test has a pid there that nobody has here."""
        with Hosts(1):
            pass  # or this is skipped
        free = next(pid for pid in range(20000, 30000) if not os.path.exists(f"/proc/{pid + 1}"))
        start = f'echo {free} >/proc/sys/kernel/ns_last_pid; "$0" "$@" & wait'
        apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", start]
        _, folder, _ = self.held(apart)
        self.addCleanup(shutil.rmtree, folder)
        before = {pid for pid, mark in marked() if mark.startswith(f"{free + 1:08}-")}
        self.assertGreaterEqual(len(before), 4)
        with Job():
            self.assertLessEqual(before, {pid for pid, _ in marked()})
            self.assertTrue(os.path.exists(folder))


class Partitions(TestCase):
    def reaches(self, hosts, one, other):
        return hosts.run(one, [sys.executable, "-c", CONNECT, hosts.address(other)]).returncode == 0

    def test_hosts_that_are_cut_from_each_other_still_reach_the_third(self):
        world = self.enterContext(World(3, 3, "namespaces"))
        job = world.start([sys.executable, "-c", LISTEN])
        job.wait_for("listens")
        world.hosts.partition([0], [1])
        seen = {(a, b): self.reaches(world.hosts, a, b) for a in range(3) for b in range(3) if a != b}
        self.assertEqual({pair for pair, is_reached in seen.items() if not is_reached}, {(0, 1), (1, 0)})


class Ends(TestCase):
    def test_codes_outputs_and_ranks_that_run_too_long(self):
        world = self.enterContext(World(3))
        script = "echo $CCOM_RANK of $CCOM_NRANKS; echo $X >&2; [ $CCOM_RANK != 2 ] || sleep 600; exit $X"
        job = world.start(["sh", "-c", script], X=["0", "7", "0"])
        self.assertEqual(job.wait_for("of 3"), ["0 of 3", "1 of 3", "2 of 3"])
        self.assertEqual([(end.code, end.errors) for end in job.wait(0.3)], [(0, "0\n"), (7, "7\n"), (None, "0\n")])

    def test_a_line_that_cannot_come_is_not_waited_for(self):
        world = self.enterContext(World(1))
        with self.assertRaisesRegex(AssertionError, "has ended without"):
            world.start(["true"]).wait_for("anything", 600)
