# SPDX-License-Identifier: Apache-2.0
"""The whole path between two hosts of two ranks each (network namespaces): the training example, unchanged, shared
memory inside and TCP across; over IPv6 alone; inside TLS, over two links at once, within a range of ports.
"""
import subprocess
import tempfile

from harness.case import TestCase, program
from harness.world import World

BENCH, TRAIN, COMPARE = program("ccom-bench"), program("train_digits"), program("compare_curves")
SUMS = [BENCH, "allreduce,alltoall", "--sizes", "8,1M", "-n", "3", "-w", "1", "--timeout", "60"]


class TwoHosts(TestCase):
    def world(self, links=1):
        return self.enterContext(World(4, 2, "namespaces", links=links))

    def computes(self, world, **environment):
        output = world.run(SUMS, 100, **environment)[0].output
        self.assertIn("4 ranks", output)
        self.assertIn("2 hosts", output)
        self.assertIn("wrong values: 0", output)
        return output

    def test_sums_are_hierarchical(self):
        self.assertIn("hierarchical", self.computes(self.world()))

    def test_ipv6_alone(self):
        world = self.world()
        for host in range(2):
            world.hosts.ip(host, f"addr del {world.hosts.address(host)}/24 dev eth0")
        self.computes(world, CCOM_URL="tcp://[fd77:0::1]:24001")

    def test_tls_over_two_links_within_a_range_of_ports(self):
        self.computes(self.world(links=2), CCOM_SOCKET_IFNAME="eth0,eth1", CCOM_TLS="1", CCOM_PORT_RANGE="24100-24120")

    def test_training_learns_what_one_rank_does(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.world().run([TRAIN, "--curve", f"{folder}/two_hosts.csv"], 120)
        subprocess.run([TRAIN, "-np", "1", "--curve", f"{folder}/one_rank.csv"], check=True, timeout=120)
        subprocess.run([COMPARE, f"{folder}/one_rank.csv", f"{folder}/two_hosts.csv", "1e-4"], check=True)
