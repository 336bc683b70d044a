# SPDX-License-Identifier: Apache-2.0
"""Clusters with faults, of network namespaces: every fault ends in the right error in bounded time, or in a correct
result.

2 x 4, 4 x 2 and uneven hosts compute right, at full speed and over a slow link, also with tiny sockets; packets
dropped at random are sent again; a pulled cable and a black hole name the host that is gone to all who are left, and
none of the ranks hangs; ranks of a partition that heals disturb no later job.
"""
import re
import time

from harness.case import TestCase, parameters, program
from harness.processes import until
from harness.world import World

BENCH, PROGRAM = program("ccom-bench"), program("rank_program")
DEAD_MS = 1500
# Silence is noticed by heartbeats, an eighth later between hosts; then everybody is told. The rest is a busy machine.
NOTICED_WITHIN = DEAD_MS / 1000 * 9 / 8 + 3
ALL = ["allreduce,allgather,reduce_scatter,broadcast,alltoall", "--sizes", "8,1000,300K", "-w", "1", "--check", "every",
       "--timeout", "100"]


class Clusters(TestCase):
    def world(self, hosts, ranks=None, **network):
        return self.enterContext(World(ranks or 2 * hosts, hosts, "namespaces", **network))

    def computes(self, world, calls=2, **environment):
        output = world.run([BENCH, *ALL, "-n", str(calls)], 110, CCOM_TIMEOUT_MS="60000", **environment)[0].output
        self.assertIn("# wrong values: 0 OK", output)
        return output

    @parameters("00001111", "00112233", "00011111", "001122233")
    def test_ranks_compute_right_on_hosts(self, hosts):
        output = self.computes(self.world(hosts, len(hosts)))
        self.assertIn(f"{len(set(hosts))} hosts", output)
        self.assertIn("hierarchical", output)

    def test_one_slow_link_delays_and_breaks_nothing(self):
        world = self.world(4, rate="1gbit")
        world.hosts.shape(2, "50mbit")
        self.computes(world)

    @parameters("tcp", "ofi")
    def test_dropped_packets_are_sent_again(self, transport):
        world = self.world(2)
        for host in range(2):
            world.hosts.drop(host, one_in=100)
        self.computes(world, CCOM_TRANSPORT=f"shm,{transport}")

    @parameters("tcp", "ofi")
    def test_sockets_that_take_little_hold_nothing_back(self, transport):
        """libfabric may keep what a full socket did not take and call it sent; its rank then waits for node-mates, and
        nobody sends it.
        """
        world = self.world(2)
        little = [f"net.ipv4.tcp_{direction}mem=4096 4096 4096" for direction in "wr"]
        for host in range(2):
            world.hosts.set(host, *little)
        self.computes(world, calls=10, CCOM_TRANSPORT=f"shm,{transport}")

    def goes(self, fault, gone, size):
        """`fault` happens to host `gone` of three in the middle of a loop of allreduces."""
        world = self.world(3)
        job = world.start([PROGRAM, "loop", str(size)], CCOM_DEAD_MS=str(DEAD_MS))
        job.wait_for("ready")
        started = time.monotonic()
        fault(world.hosts)
        lost = range(2 * gone, 2 * gone + 2)
        left = [rank for rank in range(6) if rank not in lost]
        lines = job.wait_for("failed", NOTICED_WITHIN, left)
        print(f"{size} bytes: noticed after {time.monotonic() - started:.2f} s, dead after {DEAD_MS} ms")
        for rank, line in zip(left, lines):
            self.assertRegex(line, rf"^failed 6 \[{lost[0]},{lost[1]}\] ", f"rank {rank}: not host {gone} alone")
        self.assertEqual([end.rank for end in job.wait(15) if end.code is None], [], "ranks that hang")

    @parameters(8, 4194304)
    def test_a_pulled_cable_names_the_host(self, size):
        self.goes(lambda hosts: hosts.cut(1), 1, size)

    @parameters(8, 4194304)
    def test_a_black_hole_names_the_host(self, size):
        self.goes(lambda hosts: hosts.black_hole(2), 2, size)

    def test_two_hosts_that_lose_each_other_alone_end_the_job(self):
        """The third one still hears both, so heartbeats tell nothing. Silence in the middle of a message does, after
        twice the time.
        """
        world = self.world(3)
        job = world.start([PROGRAM, "loop", "8"], CCOM_DEAD_MS=str(DEAD_MS))
        job.wait_for("ready")
        world.hosts.partition([1], [2])
        for line in job.wait_for("failed", 2 * NOTICED_WITHIN):
            self.assertRegex(line, r"^failed 6 \[[2-5](,[2-5])*\] ")
        self.assertEqual([end.rank for end in job.wait(15) if end.code is None], [], "ranks that hang")

    def test_hosts_that_do_not_reach_each_other_at_the_start_are_one_error_for_all(self):
        """U13: three ranks had three errors, which named two that were not concerned."""
        world = self.world(3, ranks=3)
        world.hosts.partition([1], [2])
        ends = world.start([PROGRAM, "loop", "8"], CCOM_INIT_TIMEOUT_MS="4000").wait(30)
        told = {re.search("^init .*", end.output, re.MULTILINE).group() for end in ends}
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told.pop(), r"^init \d+ \[1,2\] .*rank 1, connections: .* \(host '.+'\)$")

    def test_a_black_hole_during_a_whole_job_ends_its_start_in_time(self):
        world = self.world(2)
        world.hosts.black_hole(1)
        for end in world.start([PROGRAM, "loop", "8"], CCOM_INIT_TIMEOUT_MS="3000").wait(20):
            lost = "2,3" if end.rank < 2 else "0"
            self.assertRegex(end.output, rf"init 8 \[{lost}\] ", f"rank {end.rank}: {end.errors}")

    def test_ranks_of_a_partition_that_heals_disturb_no_later_job(self):
        """Host 1 is cut off and its ranks stand still; they wake up, and the network heals, in the middle of the next
        job, which has the same address and secret. Its calls check their results.
        """
        world = self.world(2)
        url = f"tcp://{world.hosts.address(0)}:24100"
        old = world.start([PROGRAM, "loop", "300000", "cycle"], CCOM_DEAD_MS=str(DEAD_MS), CCOM_URL=url)
        old.wait_for("ready")
        for rank in (2, 3):
            old.stop(rank)
        world.hosts.black_hole(1)
        old.wait_for("failed 6 [2,3] ", NOTICED_WITHIN, (0, 1))
        world.hosts.heal(1)
        new = world.start([PROGRAM, "loop", "300000", "cycle"], CCOM_URL=url)
        new.wait_for("ready")
        for rank in (2, 3):
            old.resume(rank)
        old.wait_for("failed 6 [", NOTICED_WITHIN, (2, 3))
        told = [new.output(rank).count("calls") for rank in range(4)]
        for rank in range(4):
            until(lambda: new.output(rank).count("calls"), lambda now: now > told[rank] + 1)
            self.assertNotRegex(new.output(rank), "wrong|failed", f"rank {rank}")
