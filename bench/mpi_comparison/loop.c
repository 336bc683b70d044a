/* SPDX-License-Identifier: Apache-2.0
 *
 * Times MPI's collectives in loops, as the slowest rank sees them: a line "KIND BYTES MICROSECONDS" each.
 *   loop SIZES MILLISECONDS   sizes of a rank's part, comma-separated; time for each figure, about */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static char *in, *out;
static int *counts, *at;

enum { ALLREDUCE, BCAST, REDUCE, ALLGATHER, RSB, ALLTOALL, GATHER, SCATTER, ALLGATHERV, ALLTOALLV, BARRIER };
enum { KINDS = BARRIER + 1 };
static const char* const names[] = {"Allreduce", "Bcast",  "Reduce",  "Allgather",  "Reduce_scatter_block",
                                    "Alltoall",  "Gather", "Scatter", "Allgatherv", "Alltoallv",
                                    "Barrier"};

static void call(int kind, int n) {
  const MPI_Comm world = MPI_COMM_WORLD;
  switch (kind) {
    case ALLREDUCE: MPI_Allreduce(in, out, n / 4, MPI_FLOAT, MPI_SUM, world); return;
    case BCAST: MPI_Bcast(in, n, MPI_BYTE, 0, world); return;
    case REDUCE: MPI_Reduce(in, out, n / 4, MPI_FLOAT, MPI_SUM, 0, world); return;
    case ALLGATHER: MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, world); return;
    case RSB: MPI_Reduce_scatter_block(in, out, n / 4, MPI_FLOAT, MPI_SUM, world); return;
    case ALLTOALL: MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, world); return;
    case GATHER: MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, world); return;
    case SCATTER: MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, world); return;
    case ALLGATHERV: MPI_Allgatherv(in, counts[rank], MPI_BYTE, out, counts, at, MPI_BYTE, world); return;
    case ALLTOALLV: MPI_Alltoallv(in, counts, at, MPI_BYTE, out, counts, at, MPI_BYTE, world); return;
    default: MPI_Barrier(world);
  }
}

static double seconds(int kind, int n, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(kind, n);
  double mine = (MPI_Wtime() - begin) / calls, slowest;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double budget = argc > 2 ? atof(argv[2]) * 1e-3 : 20e-3;
  counts = malloc(2 * sizeof(int) * (size_t)ranks);
  at = counts + ranks;
  for (char* size = strtok(argc > 1 ? argv[1] : (char[]){"8"}, ","); size != NULL; size = strtok(NULL, ",")) {
    const int n = atoi(size);
    const size_t bytes = (size_t)ranks * (2 * (size_t)n + 64);
    in = malloc(bytes);
    out = malloc(bytes);
    memset(in, 0, bytes); /* what nobody has written is one page of the kernel's, always in the cache */
    memset(out, 0, bytes);
    for (int i = 0, next = 0; i < ranks; ++i) { /* of unequal lengths, n on average; the same for all pairs */
      counts[i] = i % 2 == 0 ? n + n / 4 : n - n / 4;
      at[i] = next;
      next += n + n / 4;
    }
    for (int kind = 0; kind < KINDS; ++kind) {
      if (kind == BARRIER && n > 8) continue;
      if (kind == ALLTOALLV)
        for (int i = 0; i < ranks; ++i) counts[i] = n - n / 4 * ((i + rank) % 2);
      for (int i = 0; i < 20; ++i) call(kind, n);
      const double once = seconds(kind, n, 3);
      int calls = (int)(budget / 3 / once);
      if (calls < 3) calls = 3;
      if (calls > 20000) calls = 20000;
      double best = 1e9;
      for (int round = 0; round < 3; ++round) {
        const double now = seconds(kind, n, calls);
        if (now < best) best = now;
      }
      if (rank == 0) printf("%s %d %.3f\n", names[kind], n, best * 1e6);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
