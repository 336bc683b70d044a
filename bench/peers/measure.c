/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data: element i of rank r in generation g is base(r, g) + i mod 1021, small integers, so that sums are exact in any
 * order, an element of another generation, rank or place is seen, and filling costs no more than a copy.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "sync.h"

#define PERIOD 1021
#define GENERATIONS 97
#define TOO_SLOW_US 1e6 /* larger sizes would take minutes */
#define WARM_UP_US 3e5

typedef struct {
  const measure_peer* peer;
  const char* name;
  sync_group m;
  int dirty;
  int is_warm;
  double budget_us;
  measure_collective collective;
  /* Of the size at hand. */
  float* send;
  float* recv;
  size_t count;
  size_t send_count;
  size_t recv_count;
  unsigned written; /* generation of the data in send */
} bench;

static const char* const kNames[] = {"allreduce", "allgather", "reduce_scatter", "broadcast",
                                     "alltoall",  "reduce",    "gather",         "scatter"};
#define COLLECTIVES ((int)(sizeof kNames / sizeof kNames[0]))

/* One block for each rank, or from each. */
static int sends_blocks(measure_collective collective) {
  return collective == MEASURE_REDUCE_SCATTER || collective == MEASURE_ALLTOALL || collective == MEASURE_SCATTER;
}
static int receives_blocks(measure_collective collective) {
  return collective == MEASURE_ALLGATHER || collective == MEASURE_ALLTOALL || collective == MEASURE_GATHER;
}

/* ---- Data ---- */

static float base(int rank, unsigned generation) { return (float)((unsigned)rank * 7 + generation * 13 + 1); }

static void write_input(bench* b) {
  float first;
  size_t start;
  size_t i;
  b->written = (b->written + 1) % GENERATIONS;
  first = base(b->m.rank, b->written);
  for (start = 0; start < b->send_count; start += PERIOD) {
    const size_t length = b->send_count - start < PERIOD ? b->send_count - start : PERIOD;
    for (i = 0; i < length; ++i) b->send[start + i] = first + (float)(int)i;
  }
}

/* Is buffer[i] == first + factor * ((i + skip) mod PERIOD) for all i? The first that is not is told on stderr. */
static void expect(const bench* b, const char* what, const float* buffer, size_t count, float first, float factor,
                   size_t skip) {
  size_t start = 0;
  size_t place = skip % PERIOD;
  while (start < count) {
    const size_t length = count - start < PERIOD - place ? count - start : PERIOD - place;
    int differs = 0;
    size_t i;
    for (i = 0; i < length; ++i) differs |= buffer[start + i] != first + factor * (float)(int)(place + i);
    for (i = 0; differs && i < length; ++i) {
      const float expected = first + factor * (float)(int)(place + i);
      if (buffer[start + i] == expected) continue;
      fprintf(stderr, "%s: wrong data: %s of %zu elements, rank %d of %d: %s[%zu] is %g, expected %g\n", b->name,
              kNames[b->collective], b->count, b->m.rank, b->m.ranks, what, start + i, (double)buffer[start + i],
              (double)expected);
      sync_report_wrong(&b->m);
      return;
    }
    start += length;
    place = 0;
  }
}

/* What a rank that is not the root has no use for has a count of 0. */
static void verify(const bench* b) {
  const measure_collective collective = b->collective;
  const size_t own_block = (size_t)b->m.rank * b->count;
  const size_t skip = sends_blocks(collective) ? own_block : 0;
  float sum = 0;
  int rank;
  expect(b, "send", b->send, b->send_count, base(b->m.rank, b->written), 1, 0);
  for (rank = 0; rank < b->m.ranks; ++rank) {
    const float first = base(rank, b->written);
    sum += first;
    if (receives_blocks(collective) && b->recv_count > 0)
      expect(b, "recv", b->recv + (size_t)rank * b->count, b->count, first, 1, skip);
  }
  if (collective == MEASURE_BROADCAST || collective == MEASURE_SCATTER) {
    expect(b, "recv", b->recv, b->count, base(0, b->written), 1, skip);
  } else if (!receives_blocks(collective)) {
    expect(b, "recv", b->recv, b->recv_count, sum, (float)b->m.ranks, skip);
  }
}

/* ---- Measuring ---- */

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void call(const bench* b) {
  if (b->peer->call(b->collective, b->send, b->recv, b->count) == 0) return;
  fprintf(stderr, "%s: %s of %zu elements failed on rank %d\n", b->name, kNames[b->collective], b->count, b->m.rank);
  sync_fail(&b->m);
}

/* Microseconds per call of `calls` calls back to back, on this rank. */
static double timed(const bench* b, int calls) {
  double start;
  int i;
  sync_wait(&b->m);
  start = now_us();
  for (i = 0; i < calls; ++i) call(b);
  return (now_us() - start) / calls;
}

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* How long a call takes, roughly, when the library is warm. `first_us`: what the first one took. Calls above 10 ms are
 * not worth more of a warm-up. */
static double estimate_us(const bench* b, double first_us) {
  const double second_us = timed(b, 1);
  const double slow_us = second_us < first_us ? second_us : first_us;
  const int probe = sync_decide(&b->m, clamp(1e4 / slow_us, 0, 100));
  if (probe == 0) return slow_us;
  timed(b, probe);
  return clamp(timed(b, probe), 0.05, 1e9);
}

/* Processes that have just started may share processors unevenly, until the scheduler moves them: with 4 ranks on 2
 * processors calls of 8 bytes took up to twice as long in the first tenth of a second. Libraries that start slowly and
 * without sleeping have that behind them. */
static void warm_up(const bench* b) {
  const double start = now_us();
  double each_us = timed(b, 1);
  while (sync_decide(&b->m, now_us() - start < WARM_UP_US))
    each_us = timed(b, sync_decide(&b->m, clamp(WARM_UP_US / 20 / each_us, 1, 10000)));
}

typedef struct {
  double loop_us;
  double sync_us;
  int batches;
  int calls; /* per batch */
  int samples;
} figures;

static double loop(bench* b, int batches, int calls) {
  double* mine = sync_samples(&b->m);
  double median;
  int i;
  for (i = 0; i < batches; ++i) {
    write_input(b);
    mine[i] = timed(b, calls);
  }
  median = sync_median_of_largest(&b->m, batches);
  verify(b);
  return median;
}

static double sync_calls(bench* b, int samples) {
  double* mine = sync_samples(&b->m);
  double median;
  int i;
  write_input(b);
  for (i = 0; i < samples; ++i) {
    if (b->dirty) write_input(b);
    mine[i] = timed(b, 1);
  }
  median = sync_median_of_largest(&b->m, samples);
  verify(b);
  return median;
}

static figures measure(bench* b, double first_us) {
  figures f;
  const double each_us = estimate_us(b, first_us);
  const double sync_us = b->m.spins ? 1 : 20 * b->m.ranks; /* about what one takes */
  const double fewest = each_us < TOO_SLOW_US ? 3 : 1;
  f.batches = sync_decide(&b->m, clamp(b->budget_us / each_us, fewest, 7));
  f.calls = sync_decide(&b->m, clamp(b->budget_us / f.batches / each_us, 1, 20000));
  f.samples = sync_decide(&b->m, clamp(b->budget_us / (each_us + sync_us), fewest, SYNC_MAX_SAMPLES));
  f.loop_us = loop(b, f.batches, f.calls);
  if (f.calls == 1 && b->dirty) {
    /* Batches of one call are what sync measures. */
    f.sync_us = f.loop_us;
    f.samples = f.batches;
  } else {
    f.sync_us = sync_calls(b, f.samples);
  }
  return f;
}

static void print(const bench* b, const figures* f) {
  const size_t larger = b->send_count > b->recv_count ? b->send_count : b->recv_count;
  sync_wait(&b->m);
  if (b->m.rank == 0) {
    printf(
        "{\"peer\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"loop_us\": %.3f, "
        "\"sync_us\": %.3f, \"batches\": %d, \"calls\": %d, \"samples\": %d, \"verified\": %s}\n",
        b->name, kNames[b->collective], b->m.ranks, larger * sizeof(float), f->loop_us, f->sync_us, f->batches,
        f->calls, f->samples, sync_is_wrong(&b->m) ? "false" : "true");
    fflush(stdout);
  }
  sync_wait(&b->m);
}

/* ---- Sizes ---- */

static float* allocate(const bench* b, size_t bytes) {
  void* buffer;
  if (b->peer->allocate != NULL) {
    buffer = b->peer->allocate(bytes);
  } else {
    buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) buffer = NULL;
  }
  if (buffer == NULL) sync_fail_with("not enough memory for the buffers");
  return (float*)buffer;
}

static void release(const bench* b, void* buffer, size_t bytes) {
  if (b->peer->release != NULL) {
    b->peer->release(buffer, bytes);
  } else {
    munmap(buffer, bytes);
  }
}

/* Microseconds per call, the same on all ranks. */
static double measure_count(bench* b, size_t count) {
  const size_t all = count * (size_t)b->m.ranks;
  const size_t send_bytes = (sends_blocks(b->collective) ? all : count) * sizeof(float);
  const size_t recv_bytes = (receives_blocks(b->collective) ? all : count) * sizeof(float);
  double first_us;
  figures f;
  b->count = count;
  b->send_count = send_bytes / sizeof(float);
  b->recv_count = recv_bytes / sizeof(float);
  b->recv = allocate(b, recv_bytes);
  memset(b->recv, 0xff, recv_bytes);
  b->send = b->collective == MEASURE_BROADCAST ? b->recv : allocate(b, send_bytes);
  if (b->m.rank != 0) {
    if (b->collective == MEASURE_BROADCAST || b->collective == MEASURE_SCATTER) b->send_count = 0;
    if (b->collective == MEASURE_REDUCE || b->collective == MEASURE_GATHER) b->recv_count = 0;
  }
  write_input(b);
  first_us = timed(b, 1);
  verify(b);
  if (!b->is_warm) warm_up(b);
  b->is_warm = 1;
  f = measure(b, first_us);
  print(b, &f);
  if (b->send != b->recv) release(b, b->send, send_bytes);
  release(b, b->recv, recv_bytes);
  return f.loop_us;
}

static measure_collective collective_named(const char* name) {
  int i;
  for (i = 0; i < COLLECTIVES; ++i) {
    if (strcmp(name, kNames[i]) == 0) return (measure_collective)i;
  }
  sync_fail_with("COMPARE_COLLECTIVE is not known");
  return MEASURE_ALLREDUCE;
}

void measure_launch(int* rank, int* ranks) {
  const char* pmi = getenv("PMI_RANK");
  const char* pmi_size = getenv("PMI_SIZE");
  *rank = atoi(sync_setting("COMPARE_RANK", pmi));
  *ranks = atoi(sync_setting("COMPARE_RANKS", pmi_size));
}

int measure_run(const measure_peer* peer, int rank, int ranks) {
  bench b = {0};
  const char* text = sync_setting("COMPARE_SIZES", NULL);
  size_t last = 0;
  b.peer = peer;
  b.name = sync_setting("COMPARE_PEER", "peer");
  b.dirty = atoi(sync_setting("COMPARE_DIRTY", "0"));
  b.budget_us = atof(sync_setting("COMPARE_BUDGET_MS", "100")) * 1e3;
  b.collective = collective_named(sync_setting("COMPARE_COLLECTIVE", NULL));
  b.m = sync_open(rank, ranks);
  if (rank == 0) {
    printf("{\"peer\": \"%s\", \"version\": \"%s\"}\n", b.name, peer->version);
    fflush(stdout);
  }
  while (*text != '\0') {
    char* end;
    const size_t bytes = strtoull(text, &end, 10);
    const int has_blocks = sends_blocks(b.collective) || receives_blocks(b.collective);
    const size_t divisor = sizeof(float) * (has_blocks ? (size_t)ranks : 1);
    const size_t count = bytes < divisor ? 1 : bytes / divisor;
    if (end == text || (*end != ',' && *end != '\0')) sync_fail_with("COMPARE_SIZES is not a list of numbers");
    if (count != last && measure_count(&b, count) > TOO_SLOW_US) break;
    last = count;
    text = *end == ',' ? end + 1 : end;
  }
  return sync_is_wrong(&b.m) ? 1 : 0;
}
