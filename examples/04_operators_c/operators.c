/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator of one's own that does not commute: maps x -> a x + b are composed, rank 0's being applied last. Each map
 * is a pair of doubles, which travels as a ccomComplex128. Start it like 01_allreduce_c.
 */
#include <ccom/ccom.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(NULL));
  exit(1);
}

typedef struct {
  double a, b;
} map_t;

/* inout = in after inout: in is the left operand, of the lower ranks. */
static ccomResult_t compose(const void* in, void* inout, size_t count, ccomDataType_t type, void* context) {
  const map_t* left = in;
  map_t* right = inout;
  (void)context;
  if (type != ccomComplex128) return ccomInvalidArgument;
  for (size_t i = 0; i < count; ++i) {
    right[i].b = left[i].a * right[i].b + left[i].b;
    right[i].a = left[i].a * right[i].a;
  }
  return ccomSuccess;
}

int main(void) {
  int rank = 0;
  int nranks = 1;
  ccomUniqueId id;
  ccomComm_t comm = NULL;
  ccomRedOp_t op = 0;

  must(ccomGetLaunch(&rank, &nranks, NULL, NULL), "find a launcher");
  must(ccomUniqueIdFromUrl("env://", nranks, rank, &id), "find the other ranks");
  must(ccomCommInitRank(&comm, nranks, id, rank), "start");
  must(ccomRedOpCreate(&op, compose, NULL, ccomRedOpOrdered, comm), "create an operator");

  /* Rank r's map is x -> 2 x + r. */
  const map_t mine = {2, rank};
  map_t all = {0, 0};
  must(ccomAllReduce(&mine, &all, 1, ccomComplex128, op, comm, NULL), "allreduce");
  printf("rank %d of %d: x -> %g x + %g\n", rank, nranks, all.a, all.b);

  must(ccomRedOpDestroy(op, comm), "end of the operator");
  must(ccomCommDestroy(comm), "end");
  return 0;
}
