# SPDX-License-Identifier: Apache-2.0
"""Two sites, 25 ms from one another and joined by 200 Mbit/s, of two hosts each (network namespaces and far_link).

Start-up, liveness and calls hold with the shipped timeouts. Ranks that are told of the sites compute the same, proved,
and send a long sum over the link once each way; without that they send half as much again. Bytes are compared, not
times.
"""
from harness.case import TestCase, parameters, program
from harness.namespaces import Far
from harness.world import World

BENCH = program("ccom-bench")
HOSTS, PER_SITE = 4, 2
BYTES = 16 << 20
FAR = Far([PER_SITE, HOSTS - PER_SITE], program("far_link"), one_way_ms=25, rate="200mbit")


class FarApart(TestCase):
    def setUp(self):
        self.world = self.enterContext(World(2 * HOSTS, HOSTS, "namespaces", far=FAR))

    def crossed(self):
        """Bytes that have left either site."""
        return [self.world.hosts.sent(f"up{site}") for site in range(2)]

    def run_sums(self, told, arguments, **more):
        command = [BENCH, *arguments, "--check", "every", "--timeout", "100"]
        before = self.crossed()
        ends = self.world.run(FAR.told(command) if told else command, 110, CCOM_VERIFY="1", **more)
        self.assertIn("# wrong values: 0 OK", ends[0].output)
        return [after - at_first for at_first, after in zip(before, self.crossed())]

    @parameters("told", "untold")
    def test_ranks_start_and_compute_right(self, told):
        calls = ["allreduce,allgather,reduce_scatter,broadcast,alltoall", "-n", "1", "-w", "0"]
        self.run_sums(told == "told", [*calls, "--sizes", "8,1000,300K"])

    def test_a_long_sum_crosses_once(self):
        calls = 2  # and one in place for each
        arguments = ["allreduce", "--sizes", str(BYTES), "-n", str(calls), "-w", "0", "--place", "out"]
        told, untold = (self.run_sums(is_told, arguments, places="0123") for is_told in (True, False))
        of_two = self.run_sums(True, arguments)
        print("vectors that left each site:",
              [[round(sent / BYTES / calls, 2) for sent in each] for each in (told, untold, of_two)])
        for once in told + of_two:
            self.assertLess(once, 1.25 * calls * BYTES)
        for once, more in zip(told, untold):
            self.assertGreater(more, 1.2 * once)
