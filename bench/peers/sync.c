/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEPARATE __attribute__((aligned(64)))

/* The shared file. It begins as zeros. */
struct sync_state {
  SEPARATE uint32_t arrived;
  SEPARATE uint32_t generation; /* waiters sleep on it */
  SEPARATE uint32_t wrong;
  uint32_t failed;
  SEPARATE uint64_t decision;
  SEPARATE double samples[SYNC_MAX_RANKS][SYNC_MAX_SAMPLES];
};

/* ---- Environment ---- */

void sync_fail_with(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(3);
}

const char* sync_setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  if (value != NULL && value[0] != '\0') return value;
  if (otherwise == NULL) {
    fprintf(stderr, "%s is not set; see bench/peers/measure.h\n", name);
    exit(3);
  }
  return otherwise;
}

static int processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Rank r on the r-th processor that this process may use. */
static void pin(int rank) {
  cpu_set_t allowed;
  cpu_set_t one;
  int skip;
  int cpu;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) sync_fail_with("sched_getaffinity failed");
  skip = rank % CPU_COUNT(&allowed);
  for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) break;
  }
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) sync_fail_with("sched_setaffinity failed");
}

static sync_state* open_state(const char* path) {
  void* state;
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(sync_state)) != 0) {
    fprintf(stderr, "open %s: %s\n", path, strerror(errno));
    exit(3);
  }
  state = mmap(NULL, sizeof(sync_state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (state == MAP_FAILED) sync_fail_with("mmap of COMPARE_SYNC failed");
  return (sync_state*)state;
}

sync_group sync_open(int rank, int ranks) {
  sync_group m;
  const char* wait = sync_setting("COMPARE_WAIT", "");
  if (ranks > SYNC_MAX_RANKS) sync_fail_with("too many ranks");
  alarm((unsigned)atoi(sync_setting("COMPARE_TIMEOUT_S", "600")));
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive a launcher */
  m.state = open_state(sync_setting("COMPARE_SYNC", NULL));
  m.rank = rank;
  m.ranks = ranks;
  m.spins = wait[0] == '\0' ? ranks <= processors() : strcmp(wait, "spin") == 0;
  if (atoi(sync_setting("COMPARE_PIN", "0")) != 0) pin(rank);
  return m;
}

/* ---- Waiting ---- */

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void wake_all(sync_state* state) { syscall(SYS_futex, &state->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

void sync_wait(const sync_group* m) {
  sync_state* state = m->state;
  const uint32_t generation = __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&state->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)m->ranks) {
    __atomic_store_n(&state->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&state->generation, generation + 1, __ATOMIC_RELEASE);
    if (!m->spins) wake_all(state);
    return;
  }
  while (__atomic_load_n(&state->generation, __ATOMIC_ACQUIRE) == generation) {
    if (__atomic_load_n(&state->failed, __ATOMIC_RELAXED) != 0) exit(4);
    if (m->spins) {
      relax();
    } else {
      syscall(SYS_futex, &state->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
    }
  }
}

int sync_decide(const sync_group* m, double value) {
  int decision;
  if (m->rank == 0) __atomic_store_n(&m->state->decision, (uint64_t)value, __ATOMIC_RELEASE);
  sync_wait(m);
  decision = (int)__atomic_load_n(&m->state->decision, __ATOMIC_ACQUIRE);
  sync_wait(m);
  return decision;
}

/* ---- Results ---- */

double* sync_samples(const sync_group* m) { return m->state->samples[m->rank]; }

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return (a > b) - (a < b);
}

double sync_median_of_largest(const sync_group* m, int samples) {
  double largest[SYNC_MAX_SAMPLES];
  int i;
  int rank;
  sync_wait(m);
  for (i = 0; i < samples; ++i) {
    largest[i] = 0;
    for (rank = 0; rank < m->ranks; ++rank) {
      if (m->state->samples[rank][i] > largest[i]) largest[i] = m->state->samples[rank][i];
    }
  }
  sync_wait(m);
  qsort(largest, (size_t)samples, sizeof largest[0], by_value);
  return samples % 2 == 1 ? largest[samples / 2] : (largest[samples / 2 - 1] + largest[samples / 2]) / 2;
}

void sync_report_wrong(const sync_group* m) { __atomic_store_n(&m->state->wrong, 1, __ATOMIC_RELAXED); }

int sync_is_wrong(const sync_group* m) { return __atomic_load_n(&m->state->wrong, __ATOMIC_RELAXED) != 0; }

void sync_fail(const sync_group* m) {
  __atomic_store_n(&m->state->failed, 1, __ATOMIC_RELEASE);
  wake_all(m->state);
  exit(4);
}
