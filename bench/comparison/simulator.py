# SPDX-License-Identifier: Apache-2.0
"""Runs ccom-sim, one process per question, within bounds of time and memory."""
import json
import os
import resource
import signal
import subprocess

DEFAULT = os.path.join(os.path.dirname(__file__), "..", "..", "build", "release", "tools", "sim", "ccom-sim")


class Failed(Exception):
    """The simulator gave no answer; the text says why in a few words."""


def limited(seconds, memory_bytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def command(program, topology, collective, sizes, algorithm, windows=0, streams=0, sharing="turns", fold=True):
    """`algorithm`: a name, "all", or "" for the planner's choice. `windows`, `streams`: 0 for the planner's choice."""
    words = [program, topology, collective, "--bytes", ",".join(map(str, sizes)), "--json"]
    asked = (("--algorithm", algorithm), ("--windows", windows), ("--streams", streams))
    for option, value in asked + (("--sharing", sharing if sharing != "turns" else ""),):
        words += [option, str(value)] if value else []
    return words + ([] if fold else ["--no-fold"])


def run(program, topology, collective, sizes, algorithm="", seconds=60, memory_bytes=2_500_000_000, windows=0,
        streams=0, sharing="turns", fold=True):
    """The records of ccom-sim --json, one per case. `seconds`: of processor time, whatever else runs. Raises Failed."""
    words = command(program, topology, collective, sizes, algorithm, windows, streams, sharing, fold)
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          preexec_fn=limited(seconds, memory_bytes))
    if done.returncode == -signal.SIGXCPU:
        raise Failed(f"more than {seconds:g} s")
    if "bad_alloc" in done.stderr:
        raise Failed(f"more than {memory_bytes / 1e9:g} GB")
    if done.returncode != 0:
        raise Failed(done.stderr.strip().partition("\n")[0].removeprefix("ccom-sim: ")
                     or f"ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]
