/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for a library, for the tests of bench/compare: two ranks that copy through a file, rightly or, as
 * TEST_MOOD says, wrongly.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/peers/measure.h"

#define MOST 16384

typedef struct {
  uint32_t arrived[2];
  float data[2][MOST];
} exchange;

static exchange* shared;
static int rank;
static uint32_t calls;
static const char* mood;

static int is(const char* what) { return strcmp(mood, what) == 0; }

static void barrier(void) {
  const uint32_t mine = __atomic_add_fetch(&shared->arrived[rank], 1, __ATOMIC_ACQ_REL);
  while ((int32_t)(__atomic_load_n(&shared->arrived[1 - rank], __ATOMIC_ACQUIRE) - mine) < 0) sched_yield();
}

static int call(measure_collective collective, const float* send, float* recv, size_t count) {
  const int is_reduction =
      collective == MEASURE_ALLREDUCE || collective == MEASURE_REDUCE_SCATTER || collective == MEASURE_REDUCE;
  const int to_all = collective == MEASURE_ALLGATHER || collective == MEASURE_ALLTOALL || collective == MEASURE_GATHER;
  const int by_blocks =
      collective == MEASURE_REDUCE_SCATTER || collective == MEASURE_ALLTOALL || collective == MEASURE_SCATTER;
  const int to_root_alone = collective == MEASURE_REDUCE || collective == MEASURE_GATHER;
  const int is_receiver = rank == 0 || !to_root_alone;
  const size_t sent = by_blocks ? 2 * count : count;
  const size_t first = by_blocks ? (size_t)rank * count : 0;
  size_t i;
  ++calls;
  if (rank == 1 && calls > 4) {
    if (is("fails")) return 1;
    if (is("dies")) abort();
    while (is("hangs")) pause();
  }
  if (!is("stale") || calls < 3) memcpy(shared->data[rank], send, sent * sizeof(float));
  barrier();
  if (is_receiver && to_all) {
    memcpy(recv, shared->data[0] + first, count * sizeof(float));
    memcpy(recv + count, shared->data[1] + first, count * sizeof(float));
  } else if (is_receiver && is_reduction) {
    for (i = 0; i < count; ++i) recv[i] = shared->data[0][first + i] + shared->data[1][first + i];
  } else if (is_receiver && (rank == 1 || recv != send)) { /* broadcast: its root has it */
    memcpy(recv, shared->data[0] + first, count * sizeof(float));
  }
  if (rank == (to_root_alone ? 0 : 1) && is("last-element")) recv[count - 1] += 1;
  if (rank == 0 && is("clobbers-input")) ((float*)(uintptr_t)send)[sent - 1] += 1;
  barrier();
  return 0;
}

int main(void) {
  measure_peer peer = {0};
  char path[4096];
  int ranks;
  int file;
  measure_launch(&rank, &ranks);
  mood = getenv("TEST_MOOD") != NULL ? getenv("TEST_MOOD") : "";
  snprintf(path, sizeof path, "%s.data", getenv("COMPARE_SYNC"));
  file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(exchange)) != 0) return 3;
  shared = mmap(NULL, sizeof(exchange), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) return 3;
  peer.version = "test";
  peer.call = call;
  return measure_run(&peer, rank, ranks);
}
