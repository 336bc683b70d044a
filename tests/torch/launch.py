# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of a test, waits for them with a bound, ends those that are left, and shows what all said.

    job = launch.ranks(program, "--backend", "gloo", count=4)      n processes, the rendezvous in this process
    job = launch.torchrun(program, ..., count=2, nodes=2)          as users do, with an agent per node

Processes of a job are found by a mark in their environment, wherever they went; nothing else is ever killed.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

from torch.distributed import TCPStore

MARK = "CCOM_TEST_JOB"
FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
LONG = os.environ.get("CCOM_TEST_LONG", "0") not in ("", "0")
SEED = int(os.environ.get("CCOM_TEST_SEED") or 1)
PROGRAMS = os.path.join(FOLDER, "programs")
# What a launcher further out may have left behind, and what would change the result.
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CCOM_HOSTID",
           "CCOM_RANK", "CCOM_NRANKS", "CCOM_URL", "TORCH_DISTRIBUTED_DEBUG", "CCOM_TORCH_REPLACE_GLOO")
ON_LOOPBACK = {"CCOM_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}


class Failed(AssertionError):
    """A job took too long or ended badly; the text holds the end of what each of its processes said."""


class Job:
    """Started processes of one test. Use it as a context, or wait()."""

    def __init__(self):
        self.mark = uuid.uuid4().hex
        self.processes = []
        self.codes = []
        self.left_behind = []  # processes that outlived those that were started here
        self.seconds = 0.0
        self._begin = time.monotonic()
        self._folder = tempfile.TemporaryDirectory(prefix="ccom-torch-test-")
        self._store = None

    def start(self, command, environment):
        environment = {**{key: value for key, value in os.environ.items() if key not in FOREIGN}, **ON_LOOPBACK,
                       "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **environment, MARK: self.mark}
        with open(self._path(len(self.processes)), "wb") as output:
            self.processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                                   stderr=subprocess.STDOUT, start_new_session=True))

    def host_store(self):
        """A store for torch's env:// that outlives any rank; as torchrun's agent has one."""
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        return self._store.port

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    @property
    def outputs(self):
        """What each process has said so far."""
        texts = []
        for number in range(len(self.processes)):
            with open(self._path(number), encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        return texts

    @property
    def output(self):
        return "\n".join(self.outputs)

    def wait(self, timeout, succeeds=True):
        """Until all have ended. With succeeds=None any end is good, but it must come in time."""
        end = time.monotonic() + timeout
        while any(process.poll() is None for process in self.processes) and time.monotonic() < end:
            time.sleep(0.01)
        self.codes = [process.poll() for process in self.processes]
        self.seconds = time.monotonic() - self._begin
        late = None in self.codes
        self.left_behind = [] if late else self.left()
        self.end()
        if late:
            raise Failed(f"took longer than {timeout:.0f} s\n{self.report()}")
        if succeeds is not None and succeeds != (not any(self.codes)):
            raise Failed(f"ended with {self.codes}\n{self.report()}")
        return self

    def report(self, lines=40):
        parts = []
        for number, text in enumerate(self.outputs):
            code = self.processes[number].poll()
            parts.append(f"--- process {number}, code {code} ---")
            parts += text.splitlines()[-lines:]
        return "\n".join(parts)

    def left(self):
        """Processes of this job that still run, zombies aside."""
        return [pid for pid in processes_with(self.mark) if state_of(pid) not in ("Z", "X", "")]

    def end(self):
        """Kills what is left of this job, by id."""
        for _ in range(50):
            found = self.left()
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in self.processes:
                process.poll()
            if not found:
                break
            time.sleep(0.05)
        self._store = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self._folder.cleanup()

    def _path(self, number):
        return os.path.join(self._folder.name, f"{number}.txt")


def processes_with(mark):
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    yield int(name)
        except OSError:
            continue


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def program_path(name):
    return name if os.path.isabs(name) else os.path.join(PROGRAMS, name)


def start_ranks(program, *arguments, count, environment=None, per_rank=lambda rank: {}):
    """One process per rank, without waiting. per_rank: more environment of a rank."""
    job = Job()
    port = job.host_store()
    for rank in range(count):
        job.start([sys.executable, program_path(program), *arguments], {
            "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
            **(environment or {}), **per_rank(rank)})
    return job


def ranks(program, *arguments, count, timeout=120, succeeds=True, **more):
    with start_ranks(program, *arguments, count=count, **more) as job:
        return finished(job, timeout, succeeds)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_torchrun(program, *arguments, count, nodes=1, restarts=0, environment=None):
    """torchrun with `count` ranks per node. Each node counts as another host to ccom if there are several."""
    job = Job()
    if nodes == 1:
        meeting = ["--standalone"]
    else:
        meeting = [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}",
                   f"--rdzv-id={job.mark}", "--local-addr=127.0.0.1"]
    for node in range(nodes):
        host = {"CCOM_HOSTID": f"host-{node}"} if nodes > 1 else {}
        job.start([sys.executable, "-m", "torch.distributed.run", *meeting, f"--nproc-per-node={count}",
                   f"--max-restarts={restarts}", "--monitor-interval=0.1", program_path(program), *arguments],
                  {**(environment or {}), **host})
    return job


def torchrun(program, *arguments, count, timeout=120, succeeds=True, **more):
    with start_torchrun(program, *arguments, count=count, **more) as job:
        return finished(job, timeout, succeeds)


class Finished:
    """What is left of a job: its codes, what its processes said, seconds."""

    def __init__(self, job):
        self.codes, self.outputs, self.seconds = job.codes, job.outputs, job.seconds
        self.left_behind = job.left_behind
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


def finished(job, timeout, succeeds):
    return Finished(job.wait(timeout, succeeds))
