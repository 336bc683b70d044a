# SPDX-License-Identifier: Apache-2.0
"""One rank of bench/jax_compare, started by mpirun. Rank 0 writes one line of JSON per row to --out."""

import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import ccom  # noqa: E402
import ccom.jax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from comparison.barrier import Barrier  # noqa: E402

try:
    import mpi4jax
    from mpi4py import MPI
except ImportError:
    mpi4jax = None

parser = argparse.ArgumentParser()
for name, kind in (("out", str), ("barrier", str), ("sizes", str), ("repeats", int), ("budget-ms", float)):
    parser.add_argument(f"--{name}", type=kind, required=True)
options = parser.parse_args()
world = ccom.init(
    rank=int(os.environ["OMPI_COMM_WORLD_RANK"]),
    size=int(os.environ["OMPI_COMM_WORLD_SIZE"]),
    url=os.environ["CCOM_URL"],
)
barrier = Barrier(options.barrier, world.rank, world.size)


def seconds_of(run, times):
    """Per call, of the slowest rank."""
    barrier.wait()
    begin = time.perf_counter()
    run(times)
    return barrier.maximum((time.perf_counter() - begin) / times)


def cases(count):
    """By name: run(times) makes so many calls and waits for them. The arrays are zeros, so that sums stay what they
    are.
    """
    zeros = jnp.zeros(count, jnp.float32)
    array = np.zeros(count, np.float32)

    def numpy(times):
        for _ in range(times):
            world.all_reduce(array, out=array)

    def called(reduce):
        function = jax.jit(reduce)

        def run(times):
            for _ in range(times):
                jax.block_until_ready(function(zeros))

        return run

    def looped(reduce):
        function = jax.jit(lambda x, times: jax.lax.fori_loop(0, times, lambda i, y: reduce(y), x))
        return lambda times: jax.block_until_ready(function(zeros, times))

    found = {"numpy": numpy}
    libraries = {"ccom": lambda x: ccom.jax.allreduce(x, comm=world)}
    if mpi4jax is not None:
        libraries["mpi4jax"] = lambda x: mpi4jax.allreduce(x, op=MPI.SUM)
    found["ccom in place"] = looped(lambda x: ccom.jax.allreduce(x, comm=world, in_place=True))
    for name, reduce in libraries.items():
        found[f"{name} call"] = called(reduce)
        found[f"{name} loop"] = looped(reduce)
    return found


for nbytes in map(int, options.sizes.split(",")):
    runs = cases(max(1, nbytes // 4))
    times = {}
    for name, run in runs.items():
        run(3)
        once = min(seconds_of(run, 500 if nbytes < 1 << 20 else 3) for _ in range(2))
        times[name] = max(2, int(options.budget_ms / 1000 / once))
    samples = {name: [] for name in runs}
    for _ in range(options.repeats):
        for name, run in runs.items():
            samples[name].append(seconds_of(run, times[name]))
    if world.rank == 0:
        row = {
            "ranks": world.size,
            "bytes": nbytes,
            "seconds": {name: statistics.median(each) for name, each in samples.items()},
        }
        with open(options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
world.close()
