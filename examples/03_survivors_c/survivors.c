/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of allreduces that goes on in the same processes when a rank is killed: the others shrink the communicator and
 * repeat the step. Start it like 01_allreduce_c, with three ranks or more; the last one kills itself.
 */
#include <ccom/ccom.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(NULL));
  exit(1);
}

/* One step; all ranks that are left agree on whether all of them have made it. */
static int has_everybody_made_it(ccomComm_t comm, const float* mine, float* sum) {
  int made = ccomAllReduce(mine, sum, 1, ccomFloat32, ccomSum, comm, NULL) == ccomSuccess;
  must(ccomCommAgree(comm, &made, NULL, NULL), "agree");
  return made;
}

/* Without the ranks that have died. */
static ccomComm_t shrunk(ccomComm_t comm) {
  ccomComm_t smaller = NULL;
  int* ranks;
  int count = 0;
  must(ccomCommShrink(comm, NULL, 0, &smaller, NULL, CCOM_SHRINK_DEFAULT), "shrink");
  must(ccomCommDestroy(comm), "end of what has failed");
  must(ccomCommCount(smaller, &count), "count");
  ranks = malloc((size_t)count * sizeof *ranks);
  if (ranks == NULL) exit(1);
  must(ccomCommGetParentRanks(smaller, ranks), "see who is left");
  printf("%d ranks are left:", count);
  for (int i = 0; i < count; ++i) printf(" %d", ranks[i]);
  printf("\n");
  free(ranks);
  return smaller;
}

int main(void) {
  enum { kSteps = 100, kLastOfOne = 40 };
  int rank = 0;
  int nranks = 1;
  ccomUniqueId id;
  ccomComm_t comm = NULL;
  must(ccomGetLaunch(&rank, &nranks, NULL, NULL), "find a launcher");
  must(ccomUniqueIdFromUrl("env://", nranks, rank, &id), "find the other ranks");
  must(ccomCommInitRank(&comm, nranks, id, rank), "start");

  const float mine = 1;
  float sum = 0;
  for (int step = 0; step < kSteps;) {
    if (step == kLastOfOne && nranks > 2 && rank == nranks - 1) raise(SIGKILL);
    if (has_everybody_made_it(comm, &mine, &sum)) {
      ++step;
    } else {
      comm = shrunk(comm);
    }
  }
  printf("rank %d of %d: the last sum is %g\n", rank, nranks, sum);
  must(ccomCommDestroy(comm), "end");
  return 0;
}
