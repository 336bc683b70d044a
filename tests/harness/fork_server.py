# SPDX-License-Identifier: Apache-2.0
"""A Python process that has imported modules once and becomes programs by fork: `import torch` takes seconds.

    server = ForkServer("import torch", "", environment)
    if server.can_start(command, environment):
        process = server.start(command, environment, output, errors)

A forked process is like one that exec has made: its environment, arguments, session, files, `__main__`, and its end
with exit functions, threads and code. What differs: the modules of the imports are there, and /proc/PID/cmdline is the
server's. What the imports or the C library read of the environment at their start would come too late: can_start()
refuses such a variable, and a command that is not this Python with a file.
"""
import ctypes
import gc
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

from .processes import MARK, end_with_parent

# Variables of a program that nobody reads before it runs.
LATE = re.compile(r"RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|TORCHELASTIC_\w+|CCOM_\w+"
                  r"|FOUNDERS|GLOO_SOCKET_IFNAME|PYTEST_\w+|RECIPE_\w+")
_libc = ctypes.CDLL(None)
_libc.getenv.restype = ctypes.c_void_p


class Forked:
    """As subprocess.Popen. The server is its parent and tells its end."""

    def __init__(self, server, args):
        self.server, self.args, self.pid, self.returncode = server, args, None, None

    def poll(self):
        self.server.hear(0)
        return self.returncode

    def wait(self, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.server.hear(left)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class ForkServer:
    def __init__(self, imports, begin, environment):
        """Python code that the server runs once, and what each process runs before its program."""
        self.environment, self.running = environment, {}
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-c", "from harness.fork_server import serve; serve()", str(theirs.fileno()),
                   imports, begin]
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # where `python -c` looks for modules
        self.process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                        pass_fds=[theirs.fileno()], preexec_fn=end_with_parent, start_new_session=True)
        theirs.close()

    def can_start(self, command, environment):
        other = {name for name in {*environment, *self.environment} - {MARK}
                 if environment.get(name) != self.environment.get(name)}
        return command[0] == sys.executable and command[1].endswith(".py") and all(map(LATE.fullmatch, other))

    def start(self, command, environment, output, errors):
        """`output`, `errors`: paths of files."""
        process = Forked(self, command)
        self.socket.send(json.dumps([command[1:], environment, os.getcwd(), output, errors]).encode())
        while process.pid is None:
            self.hear(None, process)
        return process

    def hear(self, seconds, new=None):
        """What the server has to tell within that time: [pid] of the new process, [pid, code] of one that has ended."""
        while select.select([self.socket], [], [], seconds)[0]:
            message = self.socket.recv(1 << 10)
            if not message:
                raise RuntimeError(f"the fork server has ended with code {self.process.wait()}")
            pid, *code = json.loads(message)
            if code:
                self.running.pop(pid).returncode = code[0]
            else:
                self.running[pid], new.pid = new, pid
            seconds = 0


def serve():
    """The server; returns in each of its children when that has run its program, so that it ends as any Python."""
    descriptor, imports, begin = sys.argv[1:]
    exec(imports, {})
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("the fork server's imports have left threads")
    gc.collect()
    gc.freeze()
    connection, children = socket.socket(fileno=int(descriptor)), {}
    while True:
        for ready in select.select([connection, *children], [], [])[0]:
            if ready is not connection:
                os.close(ready)
                pid, status = os.waitpid(children.pop(ready), 0)
                connection.send(json.dumps([pid, os.waitstatus_to_exitcode(status)]).encode())
                continue
            request = connection.recv(1 << 20)
            if not request:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                connection.detach()
                os.closerange(3, 1 << 20)
                return run(begin, *json.loads(request))
            children[os.pidfd_open(pid)] = pid
            connection.send(json.dumps([pid]).encode())


def run(begin, arguments, environment, folder, output, errors):
    end_with_parent()
    os.setsid()
    os.chdir(folder)
    for number, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    # /proc/PID/environ shows where the server's variables were at its start: so the mark of this job is found there.
    mark = environment[MARK].encode()
    place = _libc.getenv(MARK.encode())
    assert len(ctypes.string_at(place)) == len(mark)
    ctypes.memmove(place, mark, len(mark))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    exec(begin, {})
    main = sys.modules["__main__"].__dict__
    main.clear()
    main.update(__name__="__main__", __file__=arguments[0], __builtins__=__builtins__, __spec__=None, __doc__=None,
                __package__=None, __loader__=None, __cached__=None, __annotations__={})
    with open(arguments[0], "rb") as file:
        code = compile(file.read(), arguments[0], "exec", dont_inherit=True)
    exec(code, main)
