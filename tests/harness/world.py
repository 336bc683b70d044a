# SPDX-License-Identifier: Apache-2.0
"""Jobs of real processes: on this host, on hosts that CCOM_HOSTID names, or on hosts that are network namespaces.

    with World(4) as world:                                    four ranks of this host
        world.run([program, "short"])
    with World(4, hosts=2) as world:                           ranks 0 and 1 on one, 2 and 3 on another
    with World(5, hosts="00111", backend="namespaces", rate="1gbit") as world:
        job = world.start([program, "loop"], CCOM_DEAD_MS="1500")
        job.wait_for("ready")
        world.hosts.cut(1)
        ends = job.wait(60)
"""
import contextlib
import signal
import sys

from .namespaces import Hosts
from .processes import PATIENCE, Job


def places(ranks, hosts):
    """The host of each rank: a digit for each, or so many hosts with as many ranks each."""
    if isinstance(hosts, int):
        return [rank * hosts // ranks for rank in range(ranks)]
    return [int(host) for host in hosts]


class World:
    def __init__(self, ranks, hosts=1, backend="processes", **network):
        """`network`: what namespaces.Hosts takes."""
        self.places, self.jobs, self.hosts = places(ranks, hosts), 0, None
        self._stack = contextlib.ExitStack()
        if backend == "namespaces":
            self.hosts = Hosts(hosts if isinstance(hosts, int) else max(self.places) + 1, **network)

    def __enter__(self):
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        if self.hosts:
            self._stack.enter_context(self.hosts)
        return self

    def __exit__(self, *_):
        self._stack.close()

    def start(self, command, places=None, **environment):
        """A rank for each place, which is its host. Of a variable that is a list each rank gets its own."""
        at = self.places if places is None else [int(host) for host in places]
        job = self._stack.enter_context(Job())
        self.jobs += 1
        for rank, host in enumerate(at):
            own = {name: value if isinstance(value, str) else value[rank] for name, value in environment.items()}
            job.start(self._on(host, command), {"CCOM_RANK": str(rank), "CCOM_NRANKS": str(len(at)),
                                                **self._address(job, at, host), **own})
        return job

    def _on(self, host, command):
        return [*self.hosts.enter(host), *command] if self.hosts else command

    def _address(self, job, at, host):
        if self.hosts:
            address = f"{self.hosts.address(at[0])}:{24000 + self.jobs}"
            return {"CCOM_URL": f"tcp://{address}", "CCOM_SECRET": "a-secret-of-this-job"}
        here = {"CCOM_URL": f"file://{job.folder}/id", "CCOM_SOCKET_IFNAME": "lo"}
        return here | ({"CCOM_HOSTID": f"host{host}"} if len(set(at)) > 1 else {})

    def run(self, command, seconds=PATIENCE, code=0, places=None, **environment):
        """A job that is to end with that code: Job.succeed()."""
        return self.start(command, places, **environment).succeed(seconds, code)
