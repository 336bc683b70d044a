/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any MPI as bench/compare measures it. COMPARE_MPI_COUNTS=1: reduce_scatter calls MPI_Reduce_scatter, for which
 * libraries have other algorithms than for MPI_Reduce_scatter_block.
 */
#include <mpi.h>
#include <stdlib.h>

#include "measure.h"

static int* counts;

static int call(measure_collective collective, const float* send, float* recv, size_t count) {
  const int n = (int)count;
  switch (collective) {
    case MEASURE_ALLREDUCE: return MPI_Allreduce(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_ALLGATHER: return MPI_Allgather(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_REDUCE_SCATTER:
      if (counts != NULL) {
        int ranks;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        while (ranks-- > 0) counts[ranks] = n;
        return MPI_Reduce_scatter(send, recv, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;
      }
      return MPI_Reduce_scatter_block(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_BROADCAST: return MPI_Bcast(recv, n, MPI_FLOAT, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_ALLTOALL: return MPI_Alltoall(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_REDUCE: return MPI_Reduce(send, recv, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_GATHER: return MPI_Gather(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    case MEASURE_SCATTER: return MPI_Scatter(send, n, MPI_FLOAT, recv, n, MPI_FLOAT, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
  }
  return 1;
}

/* The first line up to a comma, without runs of blanks and without anything that JSON would have to escape. */
static void shorten(char* text) {
  char* end = text;
  for (; *text != '\0' && *text != '\n' && *text != ','; ++text) {
    const int blank = *text == ' ' || *text == '\t';
    if (*text == '"' || *text == '\\' || (blank && text[1] == *text)) continue;
    *end++ = (char)(blank ? ' ' : *text);
  }
  *end = '\0';
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  measure_peer peer = {0};
  int length;
  int rank;
  int ranks;
  int outcome;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_library_version(version, &length);
  shorten(version);
  if (getenv("COMPARE_MPI_COUNTS") != NULL) counts = malloc((size_t)ranks * sizeof *counts);
  peer.version = version;
  peer.call = call;
  outcome = measure_run(&peer, rank, ranks);
  MPI_Finalize();
  free(counts);
  return outcome;
}
