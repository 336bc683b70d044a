# SPDX-License-Identifier: Apache-2.0
"""Clusters with faults, of network namespaces: every fault ends in the right error in bounded time, or in a correct
result.

    clusters_test.py CCOM_BENCH RANK_PROGRAM [NAME...]

2 x 4, 4 x 2 and uneven hosts compute right, at full speed and over a slow link, also with tiny sockets; packets
dropped at random are sent again; a pulled cable and a black hole name the host that is gone to all who are left, and
none of the ranks hangs; ranks of a partition that heals disturb no later job.
"""
import signal
import sys
import time
import unittest

from hosts import Hosts, Unavailable, skip

BENCH, PROGRAM = sys.argv[1:3]
DEAD_MS = 1500
# Silence is noticed by heartbeats, an eighth later between hosts; then everybody is told. The rest is a busy machine.
NOTICED_WITHIN = DEAD_MS / 1000 * 9 / 8 + 3
ALL = ["allreduce,allgather,reduce_scatter,broadcast,alltoall", "--sizes", "8,1000,300K", "-w", "1", "--check", "every",
       "--timeout", "100"]


class Clusters(unittest.TestCase):
    def computes(self, hosts, per_host, calls=2, seconds=110, **environment):
        ends = hosts.start(per_host, [BENCH, *ALL, "-n", str(calls)], CCOM_TIMEOUT_MS="60000",
                           **environment).wait(seconds)
        for end in ends:
            self.assertEqual(end.code, 0, f"rank {end.rank}: {end.errors}\n{end.output}")
        self.assertIn("# wrong values: 0 OK", ends[0].output)
        return ends[0].output

    def test_ranks_of_all_arrangements_compute_right(self):
        with Hosts(4) as hosts:
            for per_host in ([4, 4, 0, 0], [2, 2, 2, 2], [3, 5, 0, 0], [2, 2, 3, 2]):
                with self.subTest(per_host=per_host):
                    output = self.computes(hosts, per_host)
                    self.assertIn(f"{len([n for n in per_host if n])} hosts", output)
                    self.assertIn("hierarchical", output)

    def test_one_slow_link_delays_and_breaks_nothing(self):
        with Hosts(4, rate="1gbit") as hosts:
            hosts.shape(2, "50mbit")
            self.computes(hosts, 2)

    def test_dropped_packets_are_sent_again(self):
        with Hosts(2) as hosts:
            try:
                hosts.drop(0, one_in=100)
                hosts.drop(1, one_in=100)
            except Unavailable as reason:
                self.skipTest(f"packets cannot be dropped here: {reason}")
            for transport in ("tcp", "ofi"):
                with self.subTest(transport=transport):
                    self.computes(hosts, 2, CCOM_TRANSPORT=f"shm,{transport}")

    def test_sockets_that_take_little_hold_nothing_back(self):
        """libfabric may keep what a full socket did not take and call it sent; its rank then waits for node-mates, and
        nobody sends it.
        """
        with Hosts(2) as hosts:
            for host in range(2):
                hosts.run(host, ["sysctl", "-q", "-w", "net.ipv4.tcp_wmem=4096 4096 4096",
                                 "net.ipv4.tcp_rmem=4096 4096 4096"])
            for transport in ("tcp", "ofi"):
                with self.subTest(transport=transport):
                    self.computes(hosts, 2, calls=10, CCOM_TRANSPORT=f"shm,{transport}")

    def goes(self, fault, gone, size):
        """`fault` happens to host `gone` of three in the middle of a loop of allreduces."""
        with Hosts(3) as hosts:
            job = hosts.start(2, [PROGRAM, "loop", str(size)], CCOM_DEAD_MS=str(DEAD_MS))
            self.assertTrue(job.wait_for("ready", 60), [job.output(rank) for rank in range(6)])
            started = time.monotonic()
            fault(hosts, gone)
            lost = range(2 * gone, 2 * gone + 2)
            left = [rank for rank in range(6) if rank not in lost]
            self.assertTrue(job.wait_for("failed", NOTICED_WITHIN, left), "not noticed in time: " +
                            "\n".join(f"rank {rank}: {job.output(rank)}" for rank in range(6)))
            noticed = time.monotonic() - started
            for rank in left:
                line = job.output(rank).splitlines()[-1]
                self.assertRegex(line, rf"^failed 6 \[{lost[0]},{lost[1]}\] ",
                                 f"rank {rank} does not name host {gone} alone")
            ends = job.wait(15)
            self.assertEqual([end.rank for end in ends if end.code is None], [], "ranks that hang")
            print(f"{fault.__name__}, {size} bytes: noticed after {noticed:.2f} s, dead after {DEAD_MS} ms")

    def test_a_pulled_cable_names_the_host(self):
        for size in (8, 4 << 20):
            with self.subTest(size=size):
                self.goes(Hosts.cut, 1, size)

    def test_a_black_hole_names_the_host(self):
        for size in (8, 4 << 20):
            with self.subTest(size=size):
                self.goes(Hosts.black_hole, 2, size)

    def test_a_black_hole_during_a_whole_job_ends_its_start_in_time(self):
        with Hosts(2) as hosts:
            hosts.black_hole(1)
            started = time.monotonic()
            ends = hosts.start(2, [PROGRAM, "loop", "8"], CCOM_INIT_TIMEOUT_MS="3000").wait(20)
            print(f"black hole during a whole job: all ranks ended after {time.monotonic() - started:.2f} s of 3 s for "
                  "the start")
            for end in ends:
                lost = "2,3" if end.rank < 2 else "0"
                self.assertRegex(end.output, rf"init 8 \[{lost}\] ", f"rank {end.rank}: {end.errors}")

    def test_ranks_of_a_partition_that_heals_disturb_no_later_job(self):
        """Host 1 is cut off and its ranks stand still; they wake up, and the network heals, in the middle of the next
        job, which has the same address and secret. Its calls check their results."""
        with Hosts(2) as hosts:
            url = f"tcp://{hosts.address(0)}:24100"
            old = hosts.start(2, [PROGRAM, "loop", "300000", "cycle"], CCOM_DEAD_MS=str(DEAD_MS), CCOM_URL=url)
            self.assertTrue(old.wait_for("ready", 60), [old.output(rank) for rank in range(4)])
            for rank in (2, 3):
                old.kill(rank, signal.SIGSTOP)
            hosts.black_hole(1)
            self.assertTrue(old.wait_for("failed 6 [2,3] ", NOTICED_WITHIN, (0, 1)),
                            [old.output(rank) for rank in range(4)])
            hosts.heal(1)
            new = hosts.start(2, [PROGRAM, "loop", "300000", "cycle"], CCOM_URL=url)
            self.assertTrue(new.wait_for("ready", 60), [new.output(rank) for rank in range(4)])
            for rank in (2, 3):
                old.kill(rank, signal.SIGCONT)
            self.assertTrue(old.wait_for("failed 6 [", NOTICED_WITHIN, (2, 3)), [old.output(rank) for rank in range(4)])
            told = [new.output(rank).count("calls") for rank in range(4)]
            time.sleep(3)
            for rank in range(4):
                self.assertGreater(new.output(rank).count("calls"), told[rank],
                                   f"rank {rank} does not go on: {new.output(rank)}")
                self.assertNotRegex(new.output(rank), "wrong|failed", f"rank {rank}")
            for rank in range(4):
                new.kill(rank)


if __name__ == "__main__":
    try:
        with Hosts(2) as probe:
            probe.run(0, ["true"])
    except Unavailable as reason:
        skip(f"clusters of network namespaces need root, iproute2 and bridges: {reason}")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
