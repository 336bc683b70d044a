// SPDX-License-Identifier: Apache-2.0
//
// Prints how many microseconds it takes to pass 32 KiB between the first two processors that this process may use: one
// stores them over the bytes that it passed before, the other loads them and says so. The median over some dozens of
// passings, less than a millisecond in all. Virtual processors move between physical cores; when the two are far apart,
// storing to a line that the other has loaded takes several times as long. Needs two processors: else prints nothing.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBytes = 32 << 10, kWarmUp = 10, kPassings = 51 };

static alignas(128) atomic_int stored;  // number of the passing
static alignas(128) atomic_int loaded;
static alignas(4096) char shared[kBytes];
static alignas(4096) char from[kBytes];
static alignas(4096) char to[kBytes];

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void await(atomic_int* word, int passing) {
  while (atomic_load_explicit(word, memory_order_acquire) != passing) {
  }
}

// Bytes are moved from here to there in fact, whatever the compiler thinks of their use.
static void copy(char* there, const char* here) {
  memcpy(there, here, kBytes);
  __asm__ volatile("" : : "r"(there) : "memory");
}

static void* load(void* cpu) {
  pin(*(int*)cpu);
  for (int passing = 1; passing <= kWarmUp + kPassings; ++passing) {
    await(&stored, passing);
    copy(to, shared);
    atomic_store_explicit(&loaded, passing, memory_order_release);
  }
  return NULL;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
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
  if (pthread_create(&other, NULL, load, &cpus[1]) != 0) return 1;
  pin(cpus[0]);
  double times[kPassings];
  for (int passing = 1; passing <= kWarmUp + kPassings; ++passing) {
    const double begin = now_us();
    copy(shared, from);
    atomic_store_explicit(&stored, passing, memory_order_release);
    await(&loaded, passing);
    if (passing > kWarmUp) times[passing - kWarmUp - 1] = now_us() - begin;
  }
  pthread_join(other, NULL);
  qsort(times, kPassings, sizeof times[0], compare);
  printf("%.2f\n", times[kPassings / 2]);
  return 0;
}
