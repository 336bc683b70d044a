// SPDX-License-Identifier: Apache-2.0
//
// Prints how many nanoseconds a cache line takes from the first to the second processor that this process may use: the
// median over short blocks of half a round trip. Virtual processors lie nearer to each other at some times than at
// others, hence repeats of a comparison can be of different kinds. Needs two processors: else prints nothing.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kBlocks = 101, kRoundTrips = 500 };

static alignas(128) atomic_uint there;
static alignas(128) atomic_uint back;

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void await(atomic_uint* word, unsigned value) {
  while (atomic_load_explicit(word, memory_order_acquire) != value) {
  }
}

static void* answer(void* cpu) {
  pin(*(int*)cpu);
  for (unsigned i = 1; i <= kBlocks * kRoundTrips; ++i) {
    await(&there, i);
    atomic_store_explicit(&back, i, memory_order_release);
  }
  return NULL;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  int cpus[2], found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus[found++] = cpu;
  }
  if (found < 2) return 0;
  pthread_t other;
  if (pthread_create(&other, NULL, answer, &cpus[1]) != 0) return 1;
  pin(cpus[0]);
  double times[kBlocks];
  unsigned count = 0;
  for (int block = 0; block < kBlocks; ++block) {
    const double begin = now_ns();
    for (int i = 0; i < kRoundTrips; ++i) {
      atomic_store_explicit(&there, ++count, memory_order_release);
      await(&back, count);
    }
    times[block] = (now_ns() - begin) / (2 * kRoundTrips);
  }
  pthread_join(other, NULL);
  qsort(times, kBlocks, sizeof times[0], compare);
  printf("%.1f\n", times[kBlocks / 2]);
  return 0;
}
