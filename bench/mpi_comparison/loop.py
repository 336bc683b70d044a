# SPDX-License-Identifier: Apache-2.0
"""The same with mpi4py and numpy: loop.py SIZES MILLISECONDS"""
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
budget = float(sys.argv[2]) * 1e-3


def seconds(call, calls):
    world.Barrier()
    begin = MPI.Wtime()
    for _ in range(calls):
        call()
    return world.allreduce((MPI.Wtime() - begin) / calls, MPI.MAX)


for n in map(int, sys.argv[1].split(",")):
    # Written: what nobody has written is one page of the kernel's, always in the cache.
    given, got = numpy.full(n // 4, 1, numpy.float32), numpy.full(n // 4, 1, numpy.float32)
    every = numpy.full(n // 4 * world.size, 1, numpy.float32)
    calls_of = {"Allreduce": lambda: world.Allreduce(given, got), "Bcast": lambda: world.Bcast(given),
                "Reduce": lambda: world.Reduce(given, got),
                "Allgather": lambda: world.Allgather(given, every),
                "Alltoall": lambda: world.Alltoall(every, every.copy()),
                "Barrier": lambda: world.Barrier()}
    for kind, call in calls_of.items():
        if kind == "Barrier" and n > 8:
            continue
        for _ in range(20):
            call()
        calls = max(3, min(20000, int(budget / 3 / seconds(call, 3))))
        best = min(seconds(call, calls) for _ in range(3))
        if world.rank == 0:
            print(kind, n, f"{best * 1e6:.3f}", flush=True)
