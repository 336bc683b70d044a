/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI's rule of progress: what a rank has begun moves on while it waits in a collective call.
 *   progress CASE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4 << 20 };
static int rank, size;

static void sum(void) {
  int x = rank, y = -1;
  MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (y != size * (size - 1) / 2) {
    printf("rank %d: sum %d\n", rank, y);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

/* A message so long that the receiver has to ask for it; rank 1 comes to the sum when it has it. */
static void message(char* data) {
  MPI_Request request;
  if (rank == 0) {
    memset(data, 7, COUNT);
    MPI_Isend(data, COUNT, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    sum();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank == 1) {
      MPI_Recv(data, COUNT, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (data[COUNT - 1] != 7) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    sum();
  }
}

/* Rank 0 has another message that nobody receives yet, which a probe would find. */
static void unexpected(char* data) {
  MPI_Request request;
  char small[64] = "unexpected";
  if (rank == 1) MPI_Isend(small, 64, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &request);
  message(data);
  if (rank == 0) MPI_Recv(small, 64, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Rank 1 waits for a nonblocking collective, to which rank 0 contributes while it waits in another one. */
static void nonblocking(char* data) {
  MPI_Request request;
  memset(data, rank + 1, COUNT);
  MPI_Iallreduce(MPI_IN_PLACE, data, COUNT, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD, &request);
  if (rank == 0) {
    sum();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sum();
  }
  if (data[COUNT - 1] != size) MPI_Abort(MPI_COMM_WORLD, 5);
}

/* Rank 1 puts into rank 0's window while rank 0 waits in a barrier. */
static void window(char* data) {
  MPI_Win win;
  MPI_Win_create(data, COUNT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  char* const own = malloc(COUNT);
  memset(own, 9, COUNT);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(own, COUNT, MPI_BYTE, 0, 0, COUNT, MPI_BYTE, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (data[COUNT - 1] != 9) MPI_Abort(MPI_COMM_WORLD, 6);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_free(&win);
  free(own);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* const data = malloc(COUNT);
  const char* const name = argc > 1 ? argv[1] : "message";
  void (*const run)(char*) = strcmp(name, "nonblocking") == 0  ? nonblocking
                             : strcmp(name, "window") == 0     ? window
                             : strcmp(name, "unexpected") == 0 ? unexpected
                                                               : message;
  run(data); /* while ccom starts */
  sum();
  const double begin = MPI_Wtime();
  for (int i = 0; i < 20; ++i) run(data);
  const double each = (MPI_Wtime() - begin) / 20;
  if (rank == 0) printf("%s: done, %.2f ms each\n", name, each * 1e3);
  free(data);
  MPI_Finalize();
  return 0;
}
