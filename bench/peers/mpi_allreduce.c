/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI_Allreduce as ccom-bench's throughput mode measures ccomAllReduce: float32 sum, out of place, batches of calls
 * back to back, time per call = batch / calls, the slowest rank's, minimum 5 batches and 0.3 s. Prints one JSON object
 * per size. Usage: mpirun -n 4 mpi_allreduce BYTES...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  int rank;
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 1; i < argc; ++i) {
    const size_t bytes = strtoul(argv[i], NULL, 10);
    const int count = (int)(bytes / sizeof(float));
    const int calls = bytes <= 4096 ? 2000 : bytes <= (1 << 20) ? 100 : 5;
    float* send = malloc(bytes + 64);
    float* recv = malloc(bytes + 64);
    double times[1000];
    double total = 0;
    int batches = 0;
    int k;
    for (k = 0; k < count; ++k) send[k] = (float)(k % 13);
    for (k = 0; k < 5; ++k) MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    while (batches < 1000 && (batches < 5 || total < 0.3)) {
      double mine;
      double slowest;
      MPI_Barrier(MPI_COMM_WORLD);
      mine = MPI_Wtime();
      for (k = 0; k < calls; ++k) MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      mine = MPI_Wtime() - mine;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      times[batches++] = slowest / calls * 1e6;
      total += slowest;
    }
    qsort(times, (size_t)batches, sizeof times[0], by_value);
    if (rank == 0) printf("{\"bytes\": %zu, \"p50_us\": %.3f}\n", bytes, times[batches / 2]);
    free(send);
    free(recv);
  }
  MPI_Finalize();
  return 0;
}
