/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurement used by every program of bench/compare, whichever library it calls: ranks are processes that
 * synchronise between measurements through a small shared file, not through the library. Environment:
 *
 *   COMPARE_SYNC        path of the shared file: empty, one per run
 *   COMPARE_COLLECTIVE  allreduce, allgather, reduce_scatter, broadcast, alltoall, reduce, gather or scatter: float32,
 *                       sum, out of place, the root is rank 0; broadcast: in place
 *   COMPARE_SIZES       bytes of the larger buffer, ascending, separated by commas; rounded down to whole elements, at
 *                       least one. After a size whose calls take more than a second the larger ones are skipped
 *   COMPARE_BUDGET_MS   time to spend on each of the two figures of a size
 *   COMPARE_DIRTY       1: sync rewrites the input before each call
 *   COMPARE_PEER        name for the output
 *   COMPARE_RANK, COMPARE_RANKS  for programs without a launcher
 *   COMPARE_PIN         1: rank r runs on CPU r
 *   COMPARE_WAIT        spin or sleep: how ranks wait in a barrier; default: spin if there is a CPU for each
 *   COMPARE_TIMEOUT_S   timeout of the process
 *
 * loop: calls back to back in batches; a batch's time per call is the slowest rank's; the median over the batches. The
 * input is rewritten between batches. sync: a barrier, then one call; the sample is the slowest rank's; median.
 *
 * Every element of the output is compared, and the input is compared with what was written, after the first call, after
 * the last batch and after the last sync call. Rank 0 prints one JSON object per line: first one with "version", then
 * one per size with "collective", "ranks", "bytes", "loop_us", "sync_us", "verified" and the numbers of samples.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  MEASURE_ALLREDUCE = 0,
  MEASURE_ALLGATHER = 1,
  MEASURE_REDUCE_SCATTER = 2,
  MEASURE_BROADCAST = 3,
  MEASURE_ALLTOALL = 4,
  MEASURE_REDUCE = 5,
  MEASURE_GATHER = 6,
  MEASURE_SCATTER = 7
} measure_collective;

typedef struct {
  const char* version; /* of the library, for the output */
  /* Allocates buffers. NULL: private anonymous pages. */
  void* (*allocate)(size_t bytes);
  void (*release)(void* buffer, size_t bytes);
  /* One blocking collective; 0 is success. count as in ccom.h: of the send buffer for allreduce, allgather, reduce and
   * gather, of the receive buffer for reduce_scatter and scatter, per pair of ranks for alltoall. broadcast: send and
   * recv are the same buffer, which rank 0 has filled, since that is the only way in which some libraries offer it. */
  int (*call)(measure_collective collective, const float* send, float* recv, size_t count);
} measure_peer;

/* COMPARE_RANK and COMPARE_RANKS; ends the program if they are missing. */
void measure_launch(int* rank, int* ranks);
/* Measures all sizes; collective over the ranks. 0: good; 1: wrong data. A call that fails ends the program with 4. */
int measure_run(const measure_peer* peer, int rank, int ranks);

#ifdef __cplusplus
} /* extern "C" */
#endif
