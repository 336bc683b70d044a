# SPDX-License-Identifier: Apache-2.0
"""Started processes of a test: waits with a bound, what each has said, and an end of all that is left."""
import ctypes
import dataclasses
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PATIENCE = 60  # seconds, for what takes one on an idle machine
MARK = "CCOM_TEST_JOB"
_FOLDER = "ccom-job-"
# What a launcher further out may have left behind, and what would change the result.
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CCOM_HOSTID",
           "CCOM_RANK", "CCOM_NRANKS", "CCOM_URL", "CCOM_TRANSPORT", "CCOM_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
           "GLOO_SOCKET_IFNAME", "CCOM_TORCH_REPLACE_GLOO", "TORCH_DISTRIBUTED_DEBUG", "PYTHONUNBUFFERED")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_numbers = itertools.count()


def until(look, is_right=bool, seconds=PATIENCE):
    """What look() returns once is_right() of it."""
    deadline = time.monotonic() + seconds
    while not is_right(seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {seen}")
        time.sleep(0.01)
    return seen


def _state(thread):
    with open(f"/proc/{thread}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def has_ended(pid):
    """Also where it stays a zombie: the first process of a container may never ask how its orphans ended."""
    try:
        return _state(pid) == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_asleep(thread):
    """Whether a thread (its number in the system) waits: it does not run when looked at ten times in 0.1 s."""
    for _ in range(10):
        if _state(thread) != "S":
            return False
        time.sleep(0.01)
    return True


def when_asleep(then):
    """Calls that once the thread of the caller waits; in another thread."""
    thread = threading.get_native_id()
    threading.Thread(target=lambda: until(lambda: is_asleep(thread)) and then(), daemon=True).start()


def end_with_parent():
    """In a child before its exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def remove_leftovers():
    """Processes and folders of tests that have been killed."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*-*"):
        if _is_of_dead_test(folder.name.removeprefix(_FOLDER)):
            shutil.rmtree(folder, ignore_errors=True)
    for pid, mark in marked():
        if _is_of_dead_test(mark):
            kill(pid)


def _is_of_dead_test(mark):
    """Of those in other namespaces nothing is known."""
    pid, space, _ = mark.split("-", maxsplit=2)
    return space == _space() and not os.path.exists(f"/proc/{int(pid)}")


def _space():
    return str(os.stat("/proc/self/ns/pid").st_ino)


def new_mark():
    """Starts with this process, and is as long as any other."""
    return f"{os.getpid():08}-{_space()}-{next(_numbers):08}"


def marked():
    """(process, mark of its job) of those that jobs have started, and of theirs."""
    pattern = re.compile(rb"(?:^|\0)%s=(\d+-\d+-\d+)\0" % MARK.encode())
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found = pattern.search(pathlib.Path("/proc", name, "environ").read_bytes())
        except OSError:
            continue
        if found and int(name) != os.getpid():
            yield int(name), found[1].decode()


def clean_environment():
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@dataclasses.dataclass
class Ended:
    rank: int
    code: int  # negative: the signal; None: it had to be killed when the time was up
    output: str
    errors: str


class Failed(AssertionError):
    """A job took too long or ended badly; the text holds the end of what each of its processes said."""


class Job:
    """Processes, numbered in the order of their starts. Theirs are known by a mark in their environment."""

    def __init__(self):
        remove_leftovers()
        self.mark = new_mark()
        self.processes = []
        self.left_behind = []  # after wait(): processes that outlived those that were started here
        self.seconds = 0.0  # after wait(): from the first start to the last end
        self._begin = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-{_space()}-")
        os.chmod(self.folder, 0o777)

    def start(self, command, environment, server=None, **more):
        """`server`: a ForkServer, which makes the process where it can."""
        environment = {**clean_environment(), **environment, MARK: self.mark}
        rank = len(self.processes)
        with open(self._path(rank, "out"), "wb") as output, open(self._path(rank, "err"), "wb") as errors:
            if server and server.can_start(command, environment):
                process = server.start(command, environment, output.name, errors.name)
            else:
                process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=errors, preexec_fn=end_with_parent, **more)
        self.processes.append(process)

    def _path(self, rank, what):
        return os.path.join(self.folder, f"{rank}.{what}")

    def _read(self, rank, what):
        with open(self._path(rank, what), encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def ranks(self):
        return range(len(self.processes))

    @property
    def pids(self):
        return [process.pid for process in self.processes]

    def output(self, rank):
        return self._read(rank, "out")

    def errors(self, rank):
        return self._read(rank, "err")

    def all_errors(self):
        return "".join(map(self.errors, self.ranks))

    def report(self):
        return "\n".join(f"--- rank {rank}, code {self.processes[rank].poll()}\n{self.output(rank)[-4000:]}"
                         f"{self.errors(rank)[-4000:]}" for rank in self.ranks)

    def wait_for(self, text, seconds=PATIENCE, ranks=None):
        """The first line of each of the ranks that contains the text."""
        deadline = time.monotonic() + seconds
        lines = []
        for rank in self.ranks if ranks is None else ranks:
            while True:
                is_over = self.processes[rank].poll() is not None
                whole = self.output(rank).rpartition("\n")[0]
                if found := [line for line in whole.splitlines() if text in line]:
                    lines.append(found[0])
                    break
                if is_over or time.monotonic() > deadline:
                    when = "has ended" if is_over else f"is after {seconds} s"
                    raise Failed(f"rank {rank} {when} without '{text}'\n{self.report()}")
                time.sleep(0.01)
        return lines

    def kill(self, rank, number=signal.SIGKILL):
        self.processes[rank].send_signal(number)

    def stop(self, rank):
        self.kill(rank, signal.SIGSTOP)

    def resume(self, rank):
        self.kill(rank, signal.SIGCONT)

    def wait(self, seconds=PATIENCE):
        """How all ranks have ended. Those that still run when the time is up are killed."""
        deadline = time.monotonic() + seconds
        late = []
        for rank, process in enumerate(self.processes):
            try:
                process.wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(rank)
        self.seconds = time.monotonic() - self._begin
        self.left_behind = [] if late else self.left()
        self.end()
        return [Ended(rank, None if rank in late else process.returncode, self.output(rank), self.errors(rank))
                for rank, process in enumerate(self.processes)]

    def succeed(self, seconds=PATIENCE, code=0):
        """wait(), where all are to end with that code; a function gives that of each rank."""
        ends = self.wait(seconds)
        wanted = code if callable(code) else lambda _: code
        if any(end.code != wanted(end.rank) for end in ends):
            raise Failed(f"codes {[end.code for end in ends]} within {seconds} s\n{self.report()}")
        return ends

    def left(self):
        """Processes of this job that still run."""
        return [pid for pid, mark in marked() if mark == self.mark]

    def end(self):
        """Kills what is left of this job, by id."""
        for process in self.processes:
            process.kill()
            process.wait()
        while left := self.left():
            for pid in left:
                kill(pid)
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
