# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a test, waits for their ends, and returns what they said.

    job = launch.ranks(program, "--backend", "gloo", count=4)      n processes, the rendezvous in this process
    job = launch.torchrun(program, ..., count=2, nodes=2)          as users do, with an agent per node
    job = launch.run([sys.executable, program])                    what starts its ranks itself

Ranks are forked from a process that has imported torch, without ccom. by_exec=True makes them by exec, for tests of
what an import does; so are ranks whose environment torch reads when it is imported (ForkServer.can_start).
"""
import functools
import json
import os
import subprocess
import sys

from harness.case import free_port
from harness.fork_server import ForkServer
from harness.processes import MARK, Job, clean_environment, new_mark
from torch.distributed import TCPStore

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
PROGRAMS = os.path.join(FOLDER, "programs")
LONG = os.environ.get("CCOM_TEST_LONG", "0") not in ("", "0")
SEED = int(os.environ.get("CCOM_TEST_SEED") or 1)
ON_LOOPBACK = {"CCOM_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
ALWAYS = {**ON_LOOPBACK, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.path.join(ROOT, "tests")}
# torch calls the entry point of ccom at the end of its import, which the server leaves to its children.
IMPORTS = """
import os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch, torch._dynamo, torch.distributed.checkpoint, torch.distributed.fsdp, torch.distributed.optim
import torch.distributed.tensor.parallel, torch.utils.data
del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
"""
BEGIN = """
import torch
if torch._is_device_backend_autoload_enabled():
    torch._import_device_backends()
"""


class Finished:
    """What is left of a job: its codes, what its processes said, seconds."""

    def __init__(self, job, ends):
        self.codes, self.outputs = [end.code for end in ends], [end.output + end.errors for end in ends]
        self.seconds, self.left_behind, self.report = job.seconds, job.left_behind, job.report()
        self.output = "\n".join(self.outputs)

    @property
    def told(self):
        """The JSON that its processes printed, one or more in a line: Python writes its end by itself."""
        found, decoder = [], json.JSONDecoder()
        for line in self.output.splitlines():
            while line.startswith("{"):
                what, end = decoder.raw_decode(line)
                found.append(what)
                line = line[end:]
        return found


def finish(job, timeout, succeeds):
    """Until all have ended. With succeeds=None any end is good, but it must come in time."""
    finished = Finished(job, job.wait(timeout))
    assert None not in finished.codes, f"took longer than {timeout:.0f} s\n{finished.report}"
    assert succeeds in (None, not any(finished.codes)), f"ended with {finished.codes}\n{finished.report}"
    return finished


@functools.cache
def fork_server():
    return ForkServer(IMPORTS, BEGIN, {**clean_environment(), **ALWAYS, MARK: new_mark()})


def start(job, command, environment, by_exec=False):
    job.start(command, {**ALWAYS, **environment}, server=None if by_exec else fork_server(), start_new_session=True)


def run(command, timeout=120, succeeds=True, environment=None):
    with Job() as job:
        start(job, command, environment or {})
        return finish(job, timeout, succeeds)


def said_by_torchfrtrace(folder):
    """torch's own tool, on the files trace_* of the folder."""
    tool = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "--prefix", "trace_", str(folder)]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def on_hosts(count, ranks_per_host):
    """The environment of each rank, for `per_rank`."""
    return lambda rank: {"CCOM_HOSTID": f"host-{rank // ranks_per_host}"} if count > 1 else {}


HOSTS = {"one host": lambda rank: {}, "two hosts": lambda rank: {"CCOM_HOSTID": f"host-{rank % 2}"}}


def program_path(name):
    return name if os.path.isabs(name) else os.path.join(PROGRAMS, name)


def line_of(program, mark):
    """The number of the line with that comment."""
    with open(program_path(program), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if mark in line)


def ranks(program, *arguments, count, timeout=120, succeeds=True, environment=None, per_rank=lambda rank: {},
          by_exec=False):
    """One process per rank. per_rank: more environment of a rank."""
    # As torchrun's agent has one: torch's env:// outlives any rank.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with Job() as job:
        for rank in range(count):
            start(job, [sys.executable, program_path(program), *arguments], {
                "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True",
                **(environment or {}), **per_rank(rank)}, by_exec)
        return finish(job, timeout, succeeds)


def torchrun(program, *arguments, count, nodes=1, restarts=0, timeout=120, succeeds=True, environment=None):
    """torchrun with `count` ranks per node. Each node counts as another host to ccom if there are several."""
    with Job() as job:
        if nodes == 1:
            meeting = ["--standalone"]
        else:
            meeting = [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}",
                       f"--rdzv-id={job.mark}", "--local-addr=127.0.0.1"]
        for node in range(nodes):
            host = {"CCOM_HOSTID": f"host-{node}"} if nodes > 1 else {}
            start(job, [sys.executable, program_path("torchrun.py"), *meeting, f"--nproc-per-node={count}",
                        f"--max-restarts={restarts}", "--monitor-interval=0.1", program_path(program), *arguments],
                  {**(environment or {}), **host})
        return finish(job, timeout, succeeds)
