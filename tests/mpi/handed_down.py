# SPDX-License-Identifier: Apache-2.0
"""Calls of mpi4py, of which some are handed down whatever CCOM_MPI is."""
import numpy
from mpi4py import MPI

world, alone = MPI.COMM_WORLD, MPI.COMM_SELF
n, rank = world.size, world.rank
for comm in (world, alone):
    one = numpy.ones(3, dtype=numpy.int32)
    got = numpy.zeros(3 * comm.size, dtype=numpy.int32)
    counts, places = [3] * comm.size, [3 * i for i in range(comm.size)]
    part = numpy.zeros(3, dtype=numpy.int32)
    for op in (MPI.SUM, MPI.LXOR):
        comm.Allreduce(one, part, op)
        comm.Reduce(one, part, op)
        comm.Reduce_scatter_block(numpy.ones(3 * comm.size, dtype=numpy.int32), part, op)
        comm.Reduce_scatter(numpy.ones(3 * comm.size, dtype=numpy.int32), part, counts, op)
    comm.Bcast(one)
    comm.Allgather(one, got)
    assert (got == 1).all()
    comm.Allgatherv(one, [got, counts, places, MPI.INT])
    comm.Gather(one, got)
    comm.Gatherv(one, [got, counts, places, MPI.INT])
    comm.Scatter(got, part)
    comm.Scatterv([got, counts, places, MPI.INT], part)
    assert (part == 1).all()
    sent = numpy.arange(3 * comm.size, dtype=numpy.int32)
    comm.Alltoall(sent, got)
    comm.Alltoallv([sent, counts, places, MPI.INT], [got, counts, places, MPI.INT])
    assert (got[-3:] == sent[3 * comm.rank:][:3]).all()
    comm.Barrier()
assert world.allreduce(rank) == n * (n - 1) // 2
if rank == 0:
    print("handed down: done")
