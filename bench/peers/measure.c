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

#include "meeting.h"

#define PERIOD 1021
#define GENERATIONS 97

typedef struct {
  const measure_peer* peer;
  const char* name;
  meeting m;
  int dirty;
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

static const char* const kNames[] = {"allreduce", "allgather", "reduce_scatter"};

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
  size_t place = skip % PERIOD;
  size_t i;
  for (i = 0; i < count; ++i) {
    const float expected = first + factor * (float)(int)place;
    if (buffer[i] != expected) {
      fprintf(stderr, "%s: wrong data: %s of %zu elements, rank %d of %d: %s[%zu] is %g, expected %g\n", b->name,
              kNames[b->collective], b->count, b->m.rank, b->m.ranks, what, i, (double)buffer[i], (double)expected);
      meeting_tell_wrong(&b->m);
      return;
    }
    if (++place == PERIOD) place = 0;
  }
}

static void verify(const bench* b) {
  float sum = 0;
  int rank;
  expect(b, "send", b->send, b->send_count, base(b->m.rank, b->written), 1, 0);
  for (rank = 0; rank < b->m.ranks; ++rank) {
    const float first = base(rank, b->written);
    sum += first;
    if (b->collective == MEASURE_ALLGATHER) {
      expect(b, "recv", b->recv + (size_t)rank * b->count, b->count, first, 1, 0);
    }
  }
  if (b->collective != MEASURE_ALLGATHER) {
    const size_t skip = b->collective == MEASURE_REDUCE_SCATTER ? (size_t)b->m.rank * b->count : 0;
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
  meeting_fail(&b->m);
}

/* Microseconds per call of `calls` calls back to back, on this rank. */
static double timed(const bench* b, int calls) {
  double start;
  int i;
  meeting_wait(&b->m);
  start = now_us();
  for (i = 0; i < calls; ++i) call(b);
  return (now_us() - start) / calls;
}

static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* How long a call takes, roughly, when the library is warm. A call above 50 ms is not worth more of a warm-up. */
static double estimate_us(const bench* b) {
  const double once = timed(b, 1);
  const int probe = meeting_decide(&b->m, clamp(5e4 / once, 0, 100));
  if (probe == 0) return once;
  timed(b, probe);
  return clamp(timed(b, probe), 0.05, 1e9);
}

static void measure(bench* b) {
  double* mine = meeting_samples(&b->m);
  const double each_us = estimate_us(b);
  const double meeting_us = b->m.spins ? 1 : 20 * b->m.ranks; /* about what one takes */
  const int batches = meeting_decide(&b->m, clamp(b->budget_us / each_us, 3, 7));
  const int calls = meeting_decide(&b->m, clamp(b->budget_us / batches / each_us, 1, 20000));
  const int samples = meeting_decide(&b->m, clamp(b->budget_us / (each_us + meeting_us), 3, MEETING_MOST_SAMPLES));
  double loop_us;
  double sync_us;
  int i;
  for (i = 0; i < batches; ++i) {
    write_input(b);
    mine[i] = timed(b, calls);
  }
  loop_us = meeting_median_of_largest(&b->m, batches);
  verify(b);
  write_input(b);
  for (i = 0; i < samples; ++i) {
    if (b->dirty) write_input(b);
    mine[i] = timed(b, 1);
  }
  sync_us = meeting_median_of_largest(&b->m, samples);
  verify(b);
  meeting_wait(&b->m);
  if (b->m.rank == 0) {
    const size_t larger = b->send_count > b->recv_count ? b->send_count : b->recv_count;
    printf(
        "{\"peer\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"loop_us\": %.3f, "
        "\"sync_us\": %.3f, \"batches\": %d, \"calls\": %d, \"samples\": %d, \"verified\": %s}\n",
        b->name, kNames[b->collective], b->m.ranks, larger * sizeof(float), loop_us, sync_us, batches, calls, samples,
        meeting_is_wrong(&b->m) ? "false" : "true");
    fflush(stdout);
  }
  meeting_wait(&b->m);
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
  if (buffer == NULL) meeting_give_up("not enough memory for the buffers");
  return (float*)buffer;
}

static void release(const bench* b, void* buffer, size_t bytes) {
  if (b->peer->release != NULL) {
    b->peer->release(buffer, bytes);
  } else {
    munmap(buffer, bytes);
  }
}

static void measure_count(bench* b, size_t count) {
  const size_t all = count * (size_t)b->m.ranks;
  b->count = count;
  b->send_count = b->collective == MEASURE_REDUCE_SCATTER ? all : count;
  b->recv_count = b->collective == MEASURE_ALLGATHER ? all : count;
  b->send = allocate(b, b->send_count * sizeof(float));
  b->recv = allocate(b, b->recv_count * sizeof(float));
  write_input(b);
  memset(b->recv, 0xff, b->recv_count * sizeof(float));
  timed(b, 1);
  verify(b);
  measure(b);
  release(b, b->send, b->send_count * sizeof(float));
  release(b, b->recv, b->recv_count * sizeof(float));
}

static measure_collective collective_named(const char* name) {
  int i;
  for (i = 0; i < 3; ++i) {
    if (strcmp(name, kNames[i]) == 0) return (measure_collective)i;
  }
  meeting_give_up("COMPARE_COLLECTIVE is not known");
  return MEASURE_ALLREDUCE;
}

void measure_launch(int* rank, int* ranks) {
  const char* pmi = getenv("PMI_RANK");
  const char* pmi_size = getenv("PMI_SIZE");
  *rank = atoi(meeting_setting("COMPARE_RANK", pmi));
  *ranks = atoi(meeting_setting("COMPARE_RANKS", pmi_size));
}

int measure_run(const measure_peer* peer, int rank, int ranks) {
  bench b = {0};
  const char* text = meeting_setting("COMPARE_SIZES", NULL);
  size_t last = 0;
  b.peer = peer;
  b.name = meeting_setting("COMPARE_PEER", "peer");
  b.dirty = atoi(meeting_setting("COMPARE_DIRTY", "0"));
  b.budget_us = atof(meeting_setting("COMPARE_BUDGET_MS", "100")) * 1e3;
  b.collective = collective_named(meeting_setting("COMPARE_COLLECTIVE", NULL));
  b.m = meeting_open(rank, ranks);
  if (rank == 0) {
    printf("{\"peer\": \"%s\", \"version\": \"%s\"}\n", b.name, peer->version);
    fflush(stdout);
  }
  while (*text != '\0') {
    char* end;
    const size_t bytes = strtoull(text, &end, 10);
    const size_t divisor = sizeof(float) * (b.collective == MEASURE_ALLREDUCE ? 1 : (size_t)ranks);
    const size_t count = bytes < divisor ? 1 : bytes / divisor;
    if (end == text || (*end != ',' && *end != '\0')) meeting_give_up("COMPARE_SIZES is not a list of numbers");
    if (count != last) measure_count(&b, count);
    last = count;
    text = *end == ',' ? end + 1 : end;
  }
  return meeting_is_wrong(&b.m) ? 1 : 0;
}
