/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest complete program: every rank contributes its number, every rank gets the sum. Start it with any launcher
 * (mpirun, srun, torchrun --no-python), or by hand with CCOM_RANK, CCOM_NRANKS and CCOM_URL in the environment.
 */
#include <ccom/ccom.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(NULL));
  exit(1);
}

int main(void) {
  enum { kCount = 1024 };
  float values[kCount];
  int rank = 0;
  int nranks = 1;
  ccomUniqueId id;
  ccomComm_t comm = NULL;

  must(ccomGetLaunch(&rank, &nranks, NULL, NULL), "find a launcher");
  must(ccomUniqueIdFromUrl("env://", nranks, rank, &id), "find the other ranks");
  must(ccomCommInitRank(&comm, nranks, id, rank), "start");

  for (int i = 0; i < kCount; ++i) values[i] = (float)(rank + 1);
  must(ccomAllReduce(values, values, kCount, ccomFloat32, ccomSum, comm, NULL), "allreduce");
  printf("rank %d of %d: sum %g, expected %g\n", rank, nranks, values[kCount - 1], nranks * (nranks + 1) / 2.0);

  must(ccomCommDestroy(comm), "end");
  return values[0] == (float)(nranks * (nranks + 1) / 2) ? 0 : 1;
}
