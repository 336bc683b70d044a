# SPDX-License-Identifier: Apache-2.0
"""Runs ccom-sim, one process per question, within bounds of time and memory."""
import json
import os
import resource
import subprocess

DEFAULT = os.path.join(os.path.dirname(__file__), "..", "..", "build", "release", "tools", "sim", "ccom-sim")


class Failed(Exception):
    """The simulator gave no answer; the text says why in a few words."""


def limited(memory_bytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def command(program, topology, collective, sizes, algorithm, windows=0, streams=0, sharing="turns"):
    """`algorithm`: a name, "all", or "" for the planner's choice. `windows`, `streams`: 0 for the planner's choice."""
    words = [program, topology, collective, "--bytes", ",".join(map(str, sizes)), "--json"]
    asked = (("--algorithm", algorithm), ("--windows", windows), ("--streams", streams))
    for option, value in asked + (("--sharing", sharing if sharing != "turns" else ""),):
        words += [option, str(value)] if value else []
    return words


def run(program, topology, collective, sizes, algorithm="", seconds=60, memory_bytes=2_500_000_000, windows=0,
        streams=0, sharing="turns"):
    """The records of ccom-sim --json, one per case. Raises Failed."""
    words = command(program, topology, collective, sizes, algorithm, windows, streams, sharing)
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False,
                              preexec_fn=limited(memory_bytes))
    except subprocess.TimeoutExpired:
        raise Failed(f"more than {seconds:g} s") from None
    if "bad_alloc" in done.stderr:
        raise Failed(f"more than {memory_bytes / 1e9:g} GB")
    if done.returncode != 0:
        raise Failed(done.stderr.strip().partition("\n")[0].removeprefix("ccom-sim: ") or f"ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]
