/* SPDX-License-Identifier: Apache-2.0 */
/* ccom as bench/compare measures it. COMPARE_BUFFERS: ordinary (private pages) or mapped (ccomMemAlloc). */
#include <ccom/ccom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

static ccomComm_t comm;

static int failed(ccomResult_t result, const char* what) {
  if (result == ccomSuccess) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, ccomGetErrorString(result), ccomGetLastError(comm));
  return 1;
}

static void* allocate(size_t bytes) {
  void* buffer = NULL;
  return failed(ccomMemAlloc(&buffer, bytes), "ccomMemAlloc") ? NULL : buffer;
}

static void release(void* buffer, size_t bytes) {
  (void)bytes;
  failed(ccomMemFree(buffer), "ccomMemFree");
}

static int call(measure_collective collective, const float* send, float* recv, size_t count) {
  switch (collective) {
    case MEASURE_ALLREDUCE:
      return failed(ccomAllReduce(send, recv, count, ccomFloat32, ccomSum, comm, NULL), "ccomAllReduce");
    case MEASURE_ALLGATHER: return failed(ccomAllGather(send, recv, count, ccomFloat32, comm, NULL), "ccomAllGather");
    case MEASURE_REDUCE_SCATTER:
      return failed(ccomReduceScatter(send, recv, count, ccomFloat32, ccomSum, comm, NULL), "ccomReduceScatter");
    case MEASURE_BROADCAST:
      return failed(ccomBroadcast(send, recv, count, ccomFloat32, 0, comm, NULL), "ccomBroadcast");
    case MEASURE_ALLTOALL: return failed(ccomAlltoAll(send, recv, count, ccomFloat32, comm, NULL), "ccomAlltoAll");
    case MEASURE_REDUCE:
      return failed(ccomReduce(send, recv, count, ccomFloat32, ccomSum, 0, comm, NULL), "ccomReduce");
    case MEASURE_GATHER: return failed(ccomGather(send, recv, count, ccomFloat32, 0, comm, NULL), "ccomGather");
    case MEASURE_SCATTER: return failed(ccomScatter(send, recv, count, ccomFloat32, 0, comm, NULL), "ccomScatter");
  }
  return 1;
}

int main(void) {
  const char* buffers = getenv("COMPARE_BUFFERS");
  const char* sync = getenv("COMPARE_SYNC");
  measure_peer peer = {0};
  ccomUniqueId id;
  char url[4096];
  char version[32];
  int number;
  int rank;
  int ranks;
  int outcome;
  measure_launch(&rank, &ranks);
  snprintf(url, sizeof url, "file://%s.id", sync == NULL ? "" : sync);
  if (failed(ccomUniqueIdFromUrl(url, ranks, rank, &id), "ccomUniqueIdFromUrl")) return 4;
  if (failed(ccomCommInitRank(&comm, ranks, id, rank), "ccomCommInitRank")) return 4;
  ccomGetVersion(&number);
  snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  peer.version = version;
  peer.call = call;
  if (buffers != NULL && strcmp(buffers, "mapped") == 0) {
    peer.allocate = allocate;
    peer.release = release;
  }
  outcome = measure_run(&peer, rank, ranks);
  if (failed(ccomCommFinalize(comm), "ccomCommFinalize") || failed(ccomCommDestroy(comm), "ccomCommDestroy")) return 4;
  return outcome;
}
