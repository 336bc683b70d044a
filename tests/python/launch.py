# SPDX-License-Identifier: Apache-2.0
"""Ranks of a test: threads of this process, or processes of ccom-run."""

import os
import sys
import textwrap
import threading

import ccom
from harness.processes import Job

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUN = os.path.join(os.path.dirname(ccom.__file__), "bin", "ccom-run")


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


def start(size, command, *options, environment=()):
    """The job of a ccom-run whose ranks are this Python with a file, or with `-c` and a text."""
    job = Job()
    job.start(
        [RUN, "-n", str(size), *options, sys.executable, *map(str, command)],
        {"CCOM_SOCKET_IFNAME": "lo", "PYTHONPATH": TESTS, **dict(environment)},
    )
    return job


def output(job, code=0, timeout=60):
    """What the ranks of a job have printed that ends with this code, or, for None, anyhow, but in time."""
    with job:
        [end] = job.wait(timeout)
    assert end.code is not None and code in (None, end.code), f"code {end.code}\n{end.output}{end.errors}"
    return end.output + end.errors


def run(size, command, *options, code=0, timeout=60, environment=()):
    job = start(size, command, "--timeout", str(timeout), *options, environment=environment)
    return output(job, code, timeout + 20)


def on_processes(size, program, *options, **more):
    """run() of a text."""
    return run(size, ["-c", textwrap.dedent(program)], *options, **more)
