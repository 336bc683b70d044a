# SPDX-License-Identifier: Apache-2.0
"""Whole examinations of one machine, as one host and as several by CCOM_HOSTID: all well, a rank that does not come,
one that is killed, an interface that is not there, half of a launcher's variables.
"""
import contextlib
import glob
import os
import subprocess

from harness.case import TestCase, program
from harness.processes import clean_environment, until
from harness.world import World

DOCTOR = program("ccom-doctor")
LIMIT = 120


def connections_of(pid):
    """Inodes of its established TCP connections."""
    inodes = set()
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            inodes.add(os.readlink(path).removeprefix("socket:[").removesuffix("]"))
    with open("/proc/net/tcp", encoding="ascii") as file:
        return [words[9] for words in map(str.split, file) if words[3] == "01" and words[9] in inodes]


class Processes(TestCase):
    def examines(self, ranks, *options, code=0, **environment):
        """What each of so many emulated hosts says; the first one ends with that code."""
        job = self.start(ranks, *options, **environment)
        ends = job.wait(LIMIT)
        self.assertEqual(ends[0].code, code, job.report())
        return [end.output + end.errors for end in ends]

    def start(self, ranks, *options, **environment):
        return self.enterContext(World(ranks, ranks)).start([DOCTOR, *options], **environment)

    def says(self, output, *texts):
        for text in texts:
            self.assertRegex(output, text)

    def alone(self, *options, **environment):
        done = subprocess.run([DOCTOR, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT, env={**clean_environment(), "CCOM_SOCKET_IFNAME": "lo", **environment})
        return done.returncode, done.stdout

    def test_one_host(self):
        code, output = self.alone("-np", "3")
        self.assertEqual(code, 0, output)
        self.says(output, "3 ranks on 1 host,", "All ranks: a communicator started", "Verdict: (fine|works)")

    def test_three_hosts(self):
        output = self.examines(3, "--no-speed")[0]
        self.says(output, "3 ranks on 3 hosts", "6 of 6 directions", "Verdict: fine")

    def test_three_hosts_measured(self):
        """What the speeds of a busy machine mean is not asked here."""
        job = self.start(3)
        job.wait(LIMIT)
        self.says(job.output(0), "host0 - host2: .*B/s there", "All ranks: a communicator started", "Verdict: ")

    def test_json(self):
        output = self.examines(2, "--json", "--no-speed")[0]
        self.says(output, '"verdict":"fine"', '"host":"host1"', r'"speeds":\[\]')

    def test_a_rank_that_does_not_come(self):
        outputs = self.examines(2, "--wait", "10", code=1, CCOM_NRANKS="3")  # a loaded machine takes seconds to start
        self.says(outputs[0], "rank 2", "Verdict: trouble")
        self.says(outputs[1], "rank 1 on host1: .*rank 2")

    def test_an_interface_that_is_not_there(self):
        output = self.examines(3, "--no-speed", code=1, CCOM_SOCKET_IFNAME=["lo", "nosuch0", "lo"])[0]
        self.says(output, r"host1 \(rank 1\): trouble", "no data address: .*nosuch0", r"host2 \(rank 2\): fine")

    def test_a_rank_that_is_killed(self):
        """Stopped, it holds its connections, and only deadlines end the wait; killed, they break."""
        job = self.start(3)
        until(lambda: connections_of(job.pids[2]))
        job.kill(2)
        self.assertEqual(job.wait(LIMIT)[0].code, 1, job.report())
        self.says(job.output(0), "rank 2", "Verdict: trouble")

    def test_half_of_a_launchers_variables(self):
        code, output = self.alone(RANK="0")
        self.assertEqual(code, 3, output)
        self.says(output, "RANK is set but WORLD_SIZE is not")
