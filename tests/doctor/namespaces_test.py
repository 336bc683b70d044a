# SPDX-License-Identifier: Apache-2.0
"""ccom-doctor on three hosts that are network namespaces, with one thing broken in their networks: what the report must
name.
"""
from harness.case import TestCase, program
from harness.namespaces import SWITCH
from harness.world import World

DOCTOR = program("ccom-doctor")


class Networks(TestCase):
    """Hosts a, b and c on two networks, eth0 for data and eth1."""

    def setUp(self):
        self.world = self.enterContext(World(3, 3, "namespaces", links=2))
        self.hosts = self.world.hosts

    def examines(self, code, says, omits=(), order="abc", network=0, options=()):
        """The hosts in the order of their ranks; the rendezvous is on the first one, by that network."""
        places = ["abc".index(name) for name in order]
        job = self.world.start([DOCTOR, "--wait", "20", *options], places=places, CCOM_SOCKET_IFNAME="eth0",
                               CCOM_HOSTID=[f"host-{name}" for name in order],
                               CCOM_URL=f"tcp://{self.hosts.address(places[0], network)}:21000")
        ends = job.wait(150)
        self.assertEqual(max(end.code for end in ends), code, job.report())
        for text in says:
            self.assertRegex(ends[0].output, text)
        for text in omits:
            self.assertNotRegex(ends[0].output, text)

    def sends_at(self, host, rate):
        self.hosts.limit("abc".index(host), "eth0", rate)


class Broken(Networks):
    def test_healthy(self):
        for host in "abc":
            self.sends_at(host, "1gbit")
        self.examines(0, ["3 ranks on 3 hosts", "Connections: 6 of 6"], omits=["trouble"])

    def test_one_way(self):
        """c drops what would begin a connection to it; its own connections work. Speeds are not measured: those of a
        busy machine would be trouble of their own.
        """
        self.hosts.filter(2, """table inet broken { chain incoming { type filter hook input priority 0
            tcp flags & (syn | ack) == syn drop
            }
            }
            """)
        self.examines(1, [r"No other host can connect to host-c at 10.77.0.3 \(eth0\): Connection timed out",
                          r"host-a \(rank 0\): fine", r"host-c \(rank 2\): trouble"], options=["--no-speed"])

    def test_unreachable(self):
        """a has no route to b."""
        self.hosts.ip(0, f"route add blackhole {self.hosts.address(1)}/32")
        self.examines(1, ["host-a and host-b cannot reach each other|host-b and host-a cannot reach each other",
                          r"host-c \(rank 0\): fine", "host-c - host-a|host-a - host-c"], order="cab")

    def test_frames(self):
        """c is behind a router whose link takes 1300 bytes; the router's complaint does not come through."""
        self.hosts.ip(SWITCH, f"link set {self.hosts.port(2)} nomaster mtu 1300",
                      f"addr add 10.72.0.254/24 dev {self.hosts.port(2)}", "addr add 10.77.0.254/24 dev br0")
        self.hosts.set(SWITCH, "net.ipv4.ip_forward=1")
        self.hosts.ip(2, "addr flush dev eth0", "addr add 10.72.0.3/24 dev eth0", "route add default via 10.72.0.254")
        for host in range(2):
            self.hosts.ip(host, "route add 10.72.0.0/24 via 10.77.0.254", "route add blackhole 10.77.0.254/32")
            self.hosts.set(host, "net.ipv4.conf.eth0.rp_filter=1")
        self.examines(1, [r"Small messages pass from host-a to host-c at 10.72.0.3 \(eth0\), 64 KiB do not",
                          "A device on the path drops large frames"], network=1, options=["--no-speed"])

    def test_two_networks(self):
        """The data network of b is down, the rendezvous uses the other one."""
        self.hosts.cut(1)
        self.examines(1, ["host-b and the others cannot reach each other on the data network",
                          "rendezvous at 10.77.1.1:21000", "host-a - host-c: .*B/s there"], network=1)


class Slow(Networks):
    def test_shaped(self):
        """c sends at a tenth of what a and b do."""
        for host, rate in {"a": "1gbit", "b": "1gbit", "c": "100mbit"}.items():
            self.sends_at(host, rate)
        self.examines(1, [r"host-c sends to everybody at (9|1[0-9])(\.[0-9])? MB/s at most; the other hosts reach",
                          r"host-a \(rank 0\): (fine|works)", r"host-c \(rank 2\): trouble"])
