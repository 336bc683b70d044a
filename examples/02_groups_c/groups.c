/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks in a grid, as for data and model parallelism: each row and each column has a communicator of its own, split
 * from the one of all ranks without another start-up. Start it like 01_allreduce_c, with an even number of ranks.
 */
#include <ccom/ccom.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(NULL));
  exit(1);
}

/* The sum of the ranks' numbers over a communicator. */
static int sum_over(ccomComm_t comm, int rank) {
  int sum = 0;
  must(ccomAllReduce(&rank, &sum, 1, ccomInt32, ccomSum, comm, NULL), "allreduce");
  return sum;
}

int main(void) {
  enum { kColumns = 2 };
  int rank = 0;
  int nranks = 1;
  ccomUniqueId id;
  ccomComm_t all = NULL;
  ccomComm_t row = NULL;
  ccomComm_t column = NULL;
  ccomComm_t ends = NULL;

  must(ccomGetLaunch(&rank, &nranks, NULL, NULL), "find a launcher");
  must(ccomUniqueIdFromUrl("env://", nranks, rank, &id), "find the other ranks");
  must(ccomCommInitRank(&all, nranks, id, rank), "start");

  /* All ranks call; those of one color belong together, in the order of their keys. */
  must(ccomCommSplit(all, rank / kColumns, rank % kColumns, &row, NULL), "split into rows");
  must(ccomCommSplit(all, rank % kColumns, rank / kColumns, &column, NULL), "split into columns");

  /* Or: the members alone, who know one another. */
  if (nranks > 1 && (rank == 0 || rank == nranks - 1)) {
    const int members[] = {0, nranks - 1};
    must(ccomCommCreateGroup(all, members, 2, &ends, NULL), "group of the first and the last rank");
    must(ccomCommDestroy(ends), "end of the group");
  }

  const int in_row = sum_over(row, rank);
  const int in_column = sum_over(column, rank);
  printf("rank %d of %d: row %d, column %d\n", rank, nranks, in_row, in_column);

  must(ccomCommDestroy(row), "end of the row");
  must(ccomCommDestroy(column), "end of the column");
  must(ccomCommDestroy(all), "end");
  return 0;
}
