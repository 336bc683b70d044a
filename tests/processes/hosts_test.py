# SPDX-License-Identifier: Apache-2.0
"""ccom-bench on hosts of many forms, which CCOM_HOSTID names: the host of each rank is a digit. Every program is proved
before it runs, and every byte is checked.
"""
from harness.case import TestCase, parameters, program
from harness.world import World

BENCH = program("ccom-bench")
ALL_TYPES = ["-d", "float32,bfloat16", "--sizes", "0,8,4K,300K"]
FORMS = ["0", "00", "000", "00000", "00000000", "0011", "00011", "00001111", "012", "001122", "00111222", "00011111",
         "01111", "01010101", "10011010", "110100", "001122202"]


class OnHosts(TestCase):
    def start(self, hosts, collectives, *options, **environment):
        command = [BENCH, *collectives, *options, "-n", "1", "-w", "0", "--check", "every", "--no-progress",
                   "--timeout", "150"]
        return self.enterContext(World(len(hosts), hosts)).start(command, CCOM_VERIFY="1", **environment)

    def works(self, hosts, collectives, *options, transports="shm,tcp", **environment):
        ends = self.start(hosts, collectives, *options, CCOM_TRANSPORT=transports, **environment).succeed(160)
        self.assertIn("wrong values: 0 OK", ends[0].output)


class Verified(OnHosts):
    @parameters(*FORMS)
    def test_tcp(self, hosts):
        self.works(hosts, ["all"], *ALL_TYPES)

    @parameters("0011", "00011111", "01111", "10011010")
    def test_ofi(self, hosts):
        self.works(hosts, ["all"], *ALL_TYPES, transports="shm,ofi")


class Positions(OnHosts):
    """Plans whose data lies by position: halves of units that are no runs of ranks, dimensions of a torus and of hosts
    of them, trees of columns.
    """

    def works_by_position(self, hosts, collectives, **environment):
        self.works(hosts, collectives.split(), "-d", "float32", "--sizes", "96,4K,300K", **environment)

    def test_halves(self):
        self.works_by_position("01234567", "allgather reduce_scatter", CCOM_ALGO="bine")

    def test_torus(self):
        self.works_by_position("00000000", "alltoall", CCOM_TOPOLOGY="torus:2x4", CCOM_ALGO="by_dimension")

    def test_hosts_of_rings(self):
        self.works_by_position("000011112222", "alltoall", CCOM_TOPOLOGY="ring:4", CCOM_ALGO="by_dimension")

    def test_columns(self):
        self.works_by_position("000011112222", "broadcast reduce gather scatter", CCOM_TOPOLOGY="ring:4",
                               CCOM_ALGO="columns")

    def test_chosen(self):
        self.works_by_position("0000000011111111", "allgather reduce_scatter gather scatter alltoall",
                               CCOM_TOPOLOGY="torus:2x4")


class Racks(OnHosts):
    """Hosts in racks, by CCOM_HOST_RACK: a word for each rank."""
    EIGHT = "a/4 a/4 a/4 b/4 b/4 b/4 c/4 c/4"

    def works_in(self, hosts, racks, **environment):
        self.works(hosts, ["all"], "-d", "float32", "--sizes", "8,4K,300K", CCOM_HOST_RACK=racks.split(), **environment)

    def test_bine(self):
        self.works_in("01234567", self.EIGHT, CCOM_ALGO="bine")

    def test_bine_latency(self):
        self.works_in("01234567", self.EIGHT, CCOM_ALGO="bine_latency,broadcast:tree")

    def test_chosen(self):
        self.works_in("00112233", "a/8 a/8 b/8 b/8 a/8 a/8 b/8 b/8")

    def is_refused(self, hosts, racks, error):
        job = self.start(hosts, ["all"], "--sizes", "8", CCOM_TRANSPORT="shm,tcp", CCOM_HOST_RACK=racks.split())
        ends = job.wait(160)
        self.assertTrue(all(end.code not in (0, None) for end in ends), job.report())
        self.assertIn(error, job.report())

    def test_one_host_in_two_racks(self):
        self.is_refused("0011", "a b c c", 'rank 0 says that it is in rack "a", rank 1 in "b"')

    def test_a_taper_that_is_no_number(self):
        self.is_refused("01", "a/x a/x", "CCOM_HOST_RACK=a/x: the taper behind the / is not from 1 to 1000")
