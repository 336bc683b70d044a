# SPDX-License-Identifier: Apache-2.0
"""Jobs of real processes, and what ccom-status and ccom-top say of them. The folder of programs is in
CCOM_TEST_PROGRAMS.
"""

import json
import os
import subprocess
import tempfile
import time
import unittest

STATUS, TOP, PROGRAM = (os.environ[f"CCOM_TEST_{name}"] for name in ("STATUS", "TOP", "PROGRAM"))
PATIENCE = 60


class Job:
    """Ranks of one program, as `prefix` starts them; killed at the end. Variables that are lists have a value per rank.
    """

    def __init__(self, what, ranks, prefix=(), waits=True, program=PROGRAM, **environment):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o777)
        self.processes = []
        for rank in range(ranks):
            variables = {**os.environ, "CCOM_RANK": str(rank), "CCOM_NRANKS": str(ranks), "CCOM_SOCKET_IFNAME": "lo",
                         "CCOM_URL": f"file://{self.folder.name}/id", **environment}
            variables = {name: value if isinstance(value, str) else value[rank] for name, value in variables.items()}
            variables = {name: value.replace("{rank}", str(rank)) for name, value in variables.items()}
            self.processes.append(subprocess.Popen([*prefix, program, what], env=variables, stdout=subprocess.PIPE,
                                                   stderr=subprocess.DEVNULL, text=True, bufsize=1))
        if waits:
            self.wait_for("ready")

    def wait_for(self, word, ranks=None):
        """The line of each of the ranks that begins so."""
        lines = []
        for rank in range(len(self.processes)) if ranks is None else ranks:
            for line in self.processes[rank].stdout:
                if line.startswith(word):
                    lines.append(line)
                    break
            else:
                raise AssertionError(f"rank {rank} has ended without {word}")
        return lines

    def wait(self):
        return [process.wait(PATIENCE) for process in self.processes]

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def status(*arguments, prefix=(), program=STATUS):
    """Exit code and JSON."""
    done = subprocess.run([*prefix, program, "--json", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, json.loads(done.stdout)


def until(is_right, look, patience=PATIENCE):
    """What look() gives once is_right() of it."""
    deadline = time.monotonic() + patience
    while True:
        seen = look()
        if is_right(seen):
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience} s: {seen}")
        time.sleep(0.1)


def of_job(seen, job):
    """The communicators of this job: other ones of the user may run beside the test."""
    pids = {process.pid for process in job.processes}
    return [each for each in seen["communicators"] if any(rank["pid"] in pids for rank in each["seen"])]


main = unittest.main
TestCase = unittest.TestCase
