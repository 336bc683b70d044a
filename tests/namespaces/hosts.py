# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests and benchmarks: network namespaces on a switch, and ranks started in them.

    with Hosts(2, rate="1gbit") as hosts:
        job = hosts.start(4, ["ccom-bench", "allreduce", "--sizes", "64M"])   # ranks 0-3 on host 0, 4-7 on host 1
        print(job.wait(60)[0].output)

The switch is a namespace of its own with a bridge, so nothing appears among the machine's interfaces. Host h has the
addresses 10.77.0.(h+1) and fd77::(h+1) on eth0. `rate` limits each host in either direction. Everything is removed at
the end, what still runs there is killed. Needs root; Unavailable says what is missing.

    with Hosts(4, far=Far([2, 2], "build/release/tests/namespaces/far_link", one_way_ms=25, rate="200mbit")) as hosts:

puts hosts 0 and 1 on one switch, 2 and 3 on another, and a long thin link between the two.
"""
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time


class Unavailable(Exception):
    """Namespaces cannot be made here; the text says why."""


def sh(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if result.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {result.stderr.strip() or result.returncode}")
    return result.stdout


@dataclasses.dataclass
class Ended:
    rank: int
    code: int  # negative: the signal; None: it had to be killed when the time was up
    output: str
    errors: str


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


# Starts its ranks as children of one shell per host: each `ip netns exec` makes a mount namespace, and ranks in
# different ones count as different hosts. The files say who they are and how they ended.
RANKS = """
for r in $RANKS; do
  ( CCOM_RANK=$r RANK=$r LOCAL_RANK=$((r - FIRST)) "$@" >"$FOLDER/$r.out" 2>"$FOLDER/$r.err" &
    echo $! >"$FOLDER/$r.pid"; wait $!
    echo $? >"$FOLDER/$r.code.new"; mv "$FOLDER/$r.code.new" "$FOLDER/$r.code" ) &
done
wait
"""


class Job:
    """Ranks that run in namespaces."""

    def __init__(self, folder, shells, ranks):
        self.folder, self.shells, self.ranks = folder, shells, ranks

    def _read(self, rank, what):
        try:
            with open(os.path.join(self.folder, f"{rank}.{what}"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def output(self, rank):
        return self._read(rank, "out")

    def errors(self, rank):
        return self._read(rank, "err")

    def pids(self):
        return {int(self._read(rank, "pid")) for rank in self.ranks}

    def wait_for(self, text, seconds, ranks=None):
        """Until each of the ranks has printed the text; whether they all did."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(text in self.output(rank) for rank in (self.ranks if ranks is None else ranks)):
                return True
            time.sleep(0.02)
        return False

    def kill(self, rank, number=signal.SIGKILL):
        os.kill(int(self._read(rank, "pid")), number)

    def wait(self, seconds):
        """The ends of all ranks, by rank. Those that still run when the time is up are killed."""
        deadline = time.monotonic() + seconds
        for shell in self.shells:
            try:
                shell.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        ends = []
        for rank in self.ranks:
            code = self._read(rank, "code").strip()
            ends.append(Ended(rank, int(code) if code else None, self.output(rank), self._read(rank, "err")))
            if not code:
                self._stop(rank)
        return ends

    def _stop(self, rank):
        try:
            self.kill(rank)
        except (ValueError, ProcessLookupError):
            pass


class Hosts:
    def __init__(self, count, rate=None, links=1, far=None):
        """`links`: interfaces per host (eth0, eth1, ...; 10.77.<link>.<host+1>), each with a switch of its own."""
        self.count, self.rate, self.links, self.far, self.relay = count, rate, links, far, None
        self.tag = f"cc{os.getpid() % 100000}"
        self.names = [f"{self.tag}h{host}" for host in range(count)]
        self.switches = [f"{self.tag}s{link}" for link in range(links)]
        self.folder = os.path.join("/tmp", f"{self.tag}-hosts")
        self.made, self.jobs = [], 0

    def __enter__(self):
        for tool in ("ip", "tc"):
            if shutil.which(tool) is None:
                raise Unavailable(f"{tool} is not installed (iproute2)")
        os.makedirs(self.folder, exist_ok=True)
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _build(self):
        for name in self.names + self.switches:
            sh("ip", "netns", "add", name)
            self.made.append(name)
            sh("ip", "-n", name, "link", "set", "lo", "up")
        sh("ip", "netns", "exec", self.names[0], "true")
        for link, switch in enumerate(self.switches):
            sh("ip", "-n", switch, "link", "add", "name", "br0", "type", "bridge")
            sh("ip", "-n", switch, "link", "set", "br0", "up")
            for host, name in enumerate(self.names):
                sh("ip", "link", "add", "name", f"eth{link}", "netns", name, "type", "veth", "peer", "name", f"p{host}",
                   "netns", switch)
                sh("ip", "-n", name, "addr", "add", f"10.77.{link}.{host + 1}/24", "dev", f"eth{link}")
                sh("ip", "-n", name, "-6", "addr", "add", f"fd77:{link}::{host + 1}/64", "dev", f"eth{link}", "nodad")
                sh("ip", "-n", name, "link", "set", f"eth{link}", "up")
                sh("ip", "-n", switch, "link", "set", f"p{host}", "master", "br0", "up")
                if self.rate:
                    self.shape(host, self.rate, link)
        if self.far:
            self._part()

    def _part(self):
        """The second site's hosts move to a switch of their own; far_link joins it to the first one's."""
        switch = self.switches[0]
        sh("ip", "-n", switch, "link", "add", "name", "br1", "type", "bridge")
        sh("ip", "-n", switch, "link", "set", "br1", "up")
        for host in range(self.far.sites[0], self.count):
            sh("ip", "-n", switch, "link", "set", f"p{host}", "master", "br1")
        for site in range(2):
            sh("ip", "-n", switch, "link", "add", "name", f"up{site}", "type", "veth", "peer", "name", f"far{site}")
            sh("ip", "-n", switch, "link", "set", f"up{site}", "master", f"br{site}", "up")
            sh("ip", "-n", switch, "link", "set", f"far{site}", "up")
        self.relay = subprocess.Popen(
            ["ip", "netns", "exec", switch, self.far.program, "far0", "far1", str(int(self.far.one_way_ms * 1000)),
             str(self.far.bits_per_second()), *([str(self.far.queue_bytes)] if self.far.queue_bytes else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            raise Unavailable("far_link did not start")

    def on_switch(self, *command):
        return sh("ip", "netns", "exec", self.switches[0], *command)

    def address(self, host, link=0):
        return f"10.77.{link}.{host + 1}"

    def shape(self, host, rate, link=0):
        """Limits what the host sends and what it receives, in bits per second ("1gbit")."""
        for namespace, device in ((self.names[host], f"eth{link}"), (self.switches[link], f"p{host}")):
            sh("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "128kb",
               "latency", "50ms")

    def cut(self, host, link=0):
        """The cable is pulled: the host sees no carrier."""
        sh("ip", "-n", self.switches[link], "link", "set", f"p{host}", "down")

    def black_hole(self, host, link=0):
        """What the host sends and what is sent to it vanishes; the carrier stays."""
        sh("ip", "-n", self.switches[link], "link", "set", f"p{host}", "nomaster")

    def heal(self, host, link=0):
        """Ends a black hole."""
        sh("ip", "-n", self.switches[link], "link", "set", f"p{host}", "master", "br0")

    def drop(self, host, one_in, link=0):
        """Drops packets at random on their way to the host."""
        rules = (f"table bridge t {{ chain c {{ type filter hook forward priority 0; "
                 f"oifname \"p{host}\" numgen random mod {one_in} 0 drop\n}}\n}}\n")
        result = subprocess.run(["ip", "netns", "exec", self.switches[link], "nft", "-f", "-"], input=rules, text=True,
                                capture_output=True, timeout=30)
        if result.returncode != 0:
            raise Unavailable(f"nft: {result.stderr.strip()}")

    def run(self, host, command, seconds=60, **environment):
        """One command on one host; its CompletedProcess."""
        return subprocess.run(["ip", "netns", "exec", self.names[host], *command], capture_output=True, text=True,
                              timeout=seconds, env={**os.environ, **environment})

    def start(self, per_host, command, port=24001, **environment):
        """The command as a job with so many ranks per host (a number, or one per host)."""
        counts = [per_host] * self.count if isinstance(per_host, int) else list(per_host)
        self.jobs += 1
        folder = os.path.join(self.folder, str(self.jobs))
        os.makedirs(folder)
        total, first, shells = sum(counts), 0, []
        base = {key: value for key, value in os.environ.items() if key not in ("CCOM_SOCKET_IFNAME", "CCOM_URL")}
        for host, count in enumerate(counts):
            if count == 0:
                continue
            here = {**base, "CCOM_NRANKS": str(total), "WORLD_SIZE": str(total), "LOCAL_WORLD_SIZE": str(count),
                    "CCOM_URL": f"tcp://{self.address(0)}:{port + self.jobs}", "CCOM_SECRET": "a-secret-of-this-job",
                    "RANKS": " ".join(str(first + i) for i in range(count)), "FIRST": str(first), "FOLDER": folder,
                    **environment}
            shells.append(subprocess.Popen(["ip", "netns", "exec", self.names[host], "sh", "-c", RANKS, "ranks",
                                            *command],
                                           env=here, stdin=subprocess.DEVNULL))
            first += count
        return Job(folder, shells, range(total))

    def __exit__(self, *unused):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
            self.relay.stdout.close()
        for name in self.made:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True,
                                  check=False).stdout.split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def skip(reason):
    """Ends a test program: ctest's SKIP_RETURN_CODE."""
    print(f"skipped: {reason}")
    sys.exit(77)
