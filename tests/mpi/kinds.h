/* SPDX-License-Identifier: Apache-2.0
 *
 * The collective calls that libccom-mpi.so takes. */
#pragma once

enum kind {
  ALLREDUCE,
  REDUCE,
  RSB,
  RS,
  BCAST,
  ALLGATHER,
  ALLTOALL,
  GATHER,
  SCATTER,
  ALLGATHERV,
  GATHERV,
  SCATTERV,
  ALLTOALLV,
  BARRIER,
  KINDS
};
static const char* const kind_names[] = {"MPI_Allreduce",      "MPI_Reduce",  "MPI_Reduce_scatter_block",
                                         "MPI_Reduce_scatter", "MPI_Bcast",   "MPI_Allgather",
                                         "MPI_Alltoall",       "MPI_Gather",  "MPI_Scatter",
                                         "MPI_Allgatherv",     "MPI_Gatherv", "MPI_Scatterv",
                                         "MPI_Alltoallv",      "MPI_Barrier"};
