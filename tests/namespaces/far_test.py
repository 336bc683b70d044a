#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two sites, 25 ms from one another and joined by 200 Mbit/s, of two hosts each (network namespaces and far_link).

    far_test.py CCOM_BENCH FAR_LINK

Start-up, liveness and calls hold with the shipped timeouts. Ranks that are told of the sites compute the same, proved,
and send a long sum over the link once each way; without that they send half as much again. Bytes are compared, not
times.
"""
import sys
import unittest

from hosts import Far, Hosts, Unavailable, skip

BENCH, FAR_LINK = sys.argv[1:3]
HOSTS, PER_SITE = 4, 2
BYTES = 16 << 20
FAR = Far([PER_SITE, HOSTS - PER_SITE], FAR_LINK, one_way_ms=25, rate="200mbit")


class FarApart(unittest.TestCase):
    def setUp(self):
        self.hosts = self.enterContext(Hosts(HOSTS, far=FAR))

    def crossed(self):
        """Bytes that have left either site."""
        def sent(device):
            return int(self.hosts.on_switch("cat", f"/sys/class/net/{device}/statistics/tx_bytes"))
        return [sent("up0"), sent("up1")]

    def run_sums(self, per_host, told, arguments):
        command = [BENCH, *arguments, "--check", "every", "--timeout", "100"]
        if told:
            command = FAR.told(command)
        before = self.crossed()
        ends = self.hosts.start(per_host, command, CCOM_VERIFY="1").wait(110)
        for end in ends:
            self.assertEqual(end.code, 0, f"rank {end.rank}: {end.errors}\n{end.output}")
        self.assertIn("# wrong values: 0 OK", ends[0].output)
        return [after - at_first for at_first, after in zip(before, self.crossed())]

    def test_ranks_start_and_compute_right(self):
        for told in (False, True):
            with self.subTest(told=told):
                self.run_sums(2, told, ["allreduce,allgather,reduce_scatter,broadcast,alltoall", "--sizes",
                                        "8,1000,300K", "-n", "1", "-w", "0"])

    def test_a_long_sum_crosses_once(self):
        calls = 2  # and one in place for each
        arguments = ["allreduce", "--sizes", str(BYTES), "-n", str(calls), "-w", "0", "--place", "out"]
        told, untold = self.run_sums(1, True, arguments), self.run_sums(1, False, arguments)
        of_two = self.run_sums(2, True, arguments)
        print("vectors that left each site:",
              [[round(sent / BYTES / calls, 2) for sent in each] for each in (told, untold, of_two)])
        for once in told + of_two:
            self.assertLess(once, 1.25 * calls * BYTES)
        for once, more in zip(told, untold):
            self.assertGreater(more, 1.2 * once)


if __name__ == "__main__":
    try:
        with Hosts(2) as probe:
            probe.run(0, ["true"])
    except Unavailable as reason:
        skip(f"network namespaces need root, iproute2 and bridges: {reason}")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
