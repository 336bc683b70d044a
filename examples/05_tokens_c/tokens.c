/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank is an expert and has some tokens, each of which belongs to one of the experts: who gets how many differs.
 * An alltoall of the counts, then the tokens themselves there and, after the expert has doubled them, back. Start it
 * like 01_allreduce_c.
 */
#include <ccom/ccom.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(NULL));
  exit(1);
}

static size_t sum(const size_t* counts, int nranks) {
  size_t total = 0;
  for (int i = 0; i < nranks; ++i) total += counts[i];
  return total;
}

int main(void) {
  int rank = 0;
  int nranks = 1;
  ccomUniqueId id;
  ccomComm_t comm = NULL;

  must(ccomGetLaunch(&rank, &nranks, NULL, NULL), "find a launcher");
  must(ccomUniqueIdFromUrl("env://", nranks, rank, &id), "find the other ranks");
  must(ccomCommInitRank(&comm, nranks, id, rank), "start");

  /* Expert e gets e tokens of rank 0, e + 1 of rank 1, ...: none of rank 0 for expert 0. They lie expert by expert. */
  size_t* sent = malloc(2 * (size_t)nranks * sizeof *sent);
  size_t* received = sent + nranks;
  for (int expert = 0; expert < nranks; ++expert) sent[expert] = (size_t)(expert + rank);
  must(ccomAlltoAll(sent, received, sizeof *sent, ccomUint8, comm, NULL), "exchange the counts");

  const size_t own = sum(sent, nranks), foreign = sum(received, nranks);
  float* tokens = malloc((own + foreign + 1) * sizeof *tokens);
  float* here = tokens + own;
  for (size_t i = 0; i < own; ++i) tokens[i] = (float)(100 * rank) + (float)i;
  must(ccomAlltoAllV(tokens, sent, NULL, here, received, NULL, ccomFloat32, comm, NULL), "send tokens to experts");
  for (size_t i = 0; i < foreign; ++i) here[i] *= 2;
  must(ccomAlltoAllV(here, received, NULL, tokens, sent, NULL, ccomFloat32, comm, NULL), "send them back");

  size_t wrong = 0;
  for (size_t i = 0; i < own; ++i) wrong += tokens[i] != 2 * ((float)(100 * rank) + (float)i);
  printf("rank %d of %d: %zu tokens, %zu for this expert, %zu wrong\n", rank, nranks, own, foreign, wrong);

  free(tokens);
  free(sent);
  must(ccomCommDestroy(comm), "end");
  return wrong == 0 ? 0 : 1;
}
