# SPDX-License-Identifier: Apache-2.0
"""Ranks of a test: threads of this process, or processes of ccom-run."""

import os
import subprocess
import sys
import textwrap
import threading

import ccom

RUN = os.path.join(os.path.dirname(ccom.__file__), "bin", "ccom-run")
FOREIGN = (
    "CCOM_RANK",
    "CCOM_NRANKS",
    "CCOM_URL",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PYTHONUNBUFFERED",
)  # by which lines are written in pieces


def on_threads(size, body, **settings):
    """body(world) of each rank, in threads; what it returned, by rank. The first exception of a rank is raised here."""
    results, errors = [None] * size, []

    def run(world):
        try:
            results[world.rank] = body(world)
        except BaseException as error:  # shown by the test
            errors.append(error)
            world.abort()

    worlds = ccom.init_all(size, **{"timeout": 30, **settings})
    threads = [threading.Thread(target=run, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for world in worlds:
        world.close()
    if errors:
        raise errors[0]
    return results


def start(size, program, *options, environment=(), arguments=()):
    """A job of `size` processes that run this text."""
    clean = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    clean |= {"CCOM_SOCKET_IFNAME": "lo", **dict(environment)}
    command = [RUN, "-n", str(size), *options, sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.Popen(
        command, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def on_processes(size, program, *options, code=0, timeout=60, environment=()):
    """What its ranks print. The job must end with this code."""
    job = start(size, program, "--timeout", str(timeout), *options, environment=environment)
    output, _ = job.communicate(timeout=timeout + 20)
    assert job.returncode == code, f"code {job.returncode}\n{output}"
    return output
