# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network and mount namespaces of this machine, on switches; needs root and iproute2.

    with Hosts(2, rate="1gbit") as hosts:
        hosts.run(0, ["ping", "-c", "1", hosts.address(1)])
        hosts.cut(1)

Host h has the addresses 10.77.<link>.(h+1) and fd77:<link>::(h+1) on eth<link>. Each link has a bridge br<link> in a
namespace of its own, the switch, so nothing appears among the machine's interfaces. The namespaces have no names: one
process in each keeps them and ends with this one, whatever ends it. So the kernel removes them. `Unavailable` says
what is missing here.

    with Hosts(4, far=Far([2, 2], far_link, one_way_ms=25, rate="200mbit")) as hosts:

puts hosts 0 and 1 on one switch, 2 and 3 on another, and a long thin link between the two.
"""
import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import unittest

SWITCH = -1
_KERNEL_LACKS = re.compile("Operation not supported|Protocol not supported|qdisc kind is unknown|Unknown device type")


class Unavailable(unittest.SkipTest):
    """Namespaces, or what is asked of them, cannot be had here; the text says why."""


@dataclasses.dataclass
class Far:
    """Two sites and what joins them; `program` is the built far_link.cc."""
    sites: list  # hosts of each
    program: str
    one_way_ms: float
    rate: str  # each way
    queue_bytes: int = 0  # 0: what passes in 100 ms

    def bits_per_second(self):
        for unit, factor in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
            if self.rate.endswith(unit):
                return float(self.rate.removesuffix(unit)) * factor
        raise ValueError(f"{self.rate}: write 200mbit")

    def told(self, command):
        """The command for ranks, as many on each host, that are to say at which site they are."""
        link = f"@{self.bits_per_second() / 1e6:g}Mbit,{self.one_way_ms:g}ms"
        at_first = f"$((CCOM_NRANKS * {self.sites[0]} / {sum(self.sites)}))"
        return ["sh", "-c", f'if [ "$CCOM_RANK" -lt {at_first} ]; then site=north; else site=south; fi; '
                            f'CCOM_HOST_RACK=$site{link} exec "$0" "$@"', *command]


class Hosts:
    def __init__(self, count, rate=None, links=1, far=None):
        """`rate` limits each host in either direction; `links`: interfaces of each host."""
        self.count, self.rate, self.links, self.far = count, rate, links, far
        self.kept = {}  # host: the process that keeps its namespaces
        self.relay = None

    def __enter__(self):
        for tool in ("ip", "tc", "nsenter", "unshare"):
            if shutil.which(tool) is None:
                raise Unavailable(f"{tool} is not installed (iproute2, util-linux)")
        with contextlib.ExitStack() as stack:
            stack.push(self)
            for host in (SWITCH, *range(self.count)):
                self._keep(host)
            self._connect()
            if self.far:
                self._part()
            stack.pop_all()
        return self

    def _keep(self, host):
        """/sys shows the interfaces of the namespace in which it was mounted."""
        start = "mount -t sysfs none /sys && echo kept && exec cat"
        keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", start], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.kept[host] = keeper
        if keeper.stdout.readline() != "kept\n":
            raise Unavailable(f"namespaces cannot be made: {keeper.stderr.read().strip()}")

    def _connect(self):
        switch = ["link set lo up"]
        for link in range(self.links):
            switch += [f"link add name br{link} type bridge", f"link set br{link} up"]
            for host in range(self.count):
                port = self.port(host, link)
                switch += [f"link add name {port} type veth peer name eth{link} netns {self.kept[host].pid}",
                           f"link set {port} master br{link} up"]
        self.ip(SWITCH, *switch)
        for host in range(self.count):
            lines = ["link set lo up"]
            for link in range(self.links):
                lines += [f"addr add {self.address(host, link)}/24 dev eth{link}",
                          f"addr add fd77:{link}::{host + 1}/64 dev eth{link} nodad", f"link set eth{link} up"]
            self.ip(host, *lines)
            for link in range(self.links if self.rate else 0):
                self.shape(host, self.rate, link)

    def _part(self):
        """The second site's hosts move to a switch of their own; far_link joins it to the first one's."""
        names = {0: "br0", 1: "far-br"}
        lines = [f"link add name {names[1]} type bridge", f"link set {names[1]} up"]
        lines += [f"link set {self.port(host)} master {names[1]}" for host in range(self.far.sites[0], self.count)]
        for site in range(2):
            lines += [f"link add name up{site} type veth peer name far{site}",
                      f"link set up{site} master {names[site]} up", f"link set far{site} up"]
        self.ip(SWITCH, *lines)
        command = [*self.enter(SWITCH), self.far.program, "far0", "far1", str(int(self.far.one_way_ms * 1000)),
                   str(self.far.bits_per_second()), *([str(self.far.queue_bytes)] if self.far.queue_bytes else [])]
        self.relay = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise RuntimeError("far_link did not start")

    def enter(self, host, folder=None):
        """What stands before a command that is to run on the host; the process is the command's own."""
        keeper = str(self.kept[host].pid)
        return ["nsenter", "-t", keeper, "--net", "--mount", f"--wdns={folder or os.getcwd()}"]

    def run(self, host, command, seconds=60, **environment):
        """One command on one host; its CompletedProcess."""
        return subprocess.run([*self.enter(host), *command], capture_output=True, text=True, timeout=seconds,
                              env={**os.environ, **environment})

    def _must(self, host, command, text=None):
        done = subprocess.run([*self.enter(host), *command], input=text, capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            error = Unavailable if _KERNEL_LACKS.search(done.stderr) else RuntimeError
            raise error(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def ip(self, host, *lines):
        """Commands of ip on a host or on SWITCH, where eth<link> of host h ends at port(h, link)."""
        return self._must(host, ["ip", "-batch", "-"], "\n".join(lines))

    def filter(self, host, rules):
        """Rules of nft on a host or on SWITCH."""
        if shutil.which("nft") is None:
            raise Unavailable("nft is not installed (nftables)")
        self._must(host, ["nft", "-f", "-"], rules)

    def set(self, host, *settings):
        """Of the kernel: net.ipv4.ip_forward=1"""
        self._must(host, ["sysctl", "-q", "-w", *settings])

    def sent(self, device):
        """Bytes that a device of the switch has sent."""
        return int(self._must(SWITCH, ["cat", f"/sys/class/net/{device}/statistics/tx_bytes"]))

    @staticmethod
    def address(host, link=0):
        return f"10.77.{link}.{host + 1}"

    @staticmethod
    def port(host, link=0):
        return f"p{host}l{link}"

    def limit(self, host, device, rate):
        """Limits what leaves the device, in bits per second ("1gbit")."""
        self._must(host, ["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "128kb",
                          "latency", "50ms"])

    def shape(self, host, rate, link=0):
        """Limits what the host sends and what it receives."""
        self.limit(host, f"eth{link}", rate)
        self.limit(SWITCH, self.port(host, link), rate)

    def cut(self, host, link=0):
        """The cable is pulled: the host sees no carrier."""
        self.ip(SWITCH, f"link set {self.port(host, link)} down")

    def black_hole(self, host, link=0):
        """What the host sends and what is sent to it vanishes; the carrier stays."""
        self.ip(SWITCH, f"link set {self.port(host, link)} nomaster")

    def heal(self, host, link=0):
        """Ends a black hole."""
        self.ip(SWITCH, f"link set {self.port(host, link)} master br{link}")

    def _forward(self, rule):
        hook = "type filter hook forward priority 0"
        self.filter(SWITCH, f"table bridge faults {{ chain forward {{ {hook}\n{rule}\n}}\n}}\n")

    def partition(self, some, others):
        """What either hosts send to the others vanishes, on all links."""
        for one in some:
            for other in others:
                for sender, receiver in ((one, other), (other, one)):
                    self._forward(f'iifname "p{sender}l*" oifname "p{receiver}l*" drop')

    def drop(self, host, one_in, link=0):
        """Drops packets at random on their way to the host."""
        self._forward(f'oifname "{self.port(host, link)}" numgen random mod {one_in} 0 drop')

    def __exit__(self, *_):
        for process in filter(None, [self.relay, *self.kept.values()]):
            process.kill()
            process.communicate()
        self.kept.clear()
