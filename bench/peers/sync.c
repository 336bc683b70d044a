/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "meeting.h"

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
struct meeting_room {
  SEPARATE uint32_t arrived;
  SEPARATE uint32_t generation; /* waiters sleep on it */
  SEPARATE uint32_t wrong;
  uint32_t failed;
  SEPARATE uint64_t decision;
  SEPARATE double samples[MEETING_MOST_RANKS][MEETING_MOST_SAMPLES];
};

/* ---- Environment ---- */

void meeting_give_up(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(3);
}

const char* meeting_setting(const char* name, const char* otherwise) {
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
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) meeting_give_up("sched_getaffinity failed");
  skip = rank % CPU_COUNT(&allowed);
  for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) break;
  }
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) meeting_give_up("sched_setaffinity failed");
}

static meeting_room* open_room(const char* path) {
  void* room;
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(meeting_room)) != 0) {
    fprintf(stderr, "open %s: %s\n", path, strerror(errno));
    exit(3);
  }
  room = mmap(NULL, sizeof(meeting_room), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (room == MAP_FAILED) meeting_give_up("mmap of COMPARE_MEETING failed");
  return (meeting_room*)room;
}

meeting meeting_open(int rank, int ranks) {
  meeting m;
  const char* wait = meeting_setting("COMPARE_WAIT", "");
  if (ranks > MEETING_MOST_RANKS) meeting_give_up("too many ranks");
  alarm((unsigned)atoi(meeting_setting("COMPARE_TIMEOUT_S", "600")));
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive a launcher */
  m.room = open_room(meeting_setting("COMPARE_MEETING", NULL));
  m.rank = rank;
  m.ranks = ranks;
  m.spins = wait[0] == '\0' ? ranks <= processors() : strcmp(wait, "spin") == 0;
  if (atoi(meeting_setting("COMPARE_PIN", "0")) != 0) pin(rank);
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

static void wake_all(meeting_room* room) { syscall(SYS_futex, &room->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

void meeting_wait(const meeting* m) {
  meeting_room* room = m->room;
  const uint32_t generation = __atomic_load_n(&room->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&room->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)m->ranks) {
    __atomic_store_n(&room->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&room->generation, generation + 1, __ATOMIC_RELEASE);
    if (!m->spins) wake_all(room);
    return;
  }
  while (__atomic_load_n(&room->generation, __ATOMIC_ACQUIRE) == generation) {
    if (__atomic_load_n(&room->failed, __ATOMIC_RELAXED) != 0) exit(4);
    if (m->spins) {
      relax();
    } else {
      syscall(SYS_futex, &room->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
    }
  }
}

int meeting_decide(const meeting* m, double value) {
  int decision;
  if (m->rank == 0) __atomic_store_n(&m->room->decision, (uint64_t)value, __ATOMIC_RELEASE);
  meeting_wait(m);
  decision = (int)__atomic_load_n(&m->room->decision, __ATOMIC_ACQUIRE);
  meeting_wait(m);
  return decision;
}

/* ---- Results ---- */

double* meeting_samples(const meeting* m) { return m->room->samples[m->rank]; }

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return (a > b) - (a < b);
}

double meeting_median_of_largest(const meeting* m, int samples) {
  double largest[MEETING_MOST_SAMPLES];
  int i;
  int rank;
  meeting_wait(m);
  for (i = 0; i < samples; ++i) {
    largest[i] = 0;
    for (rank = 0; rank < m->ranks; ++rank) {
      if (m->room->samples[rank][i] > largest[i]) largest[i] = m->room->samples[rank][i];
    }
  }
  meeting_wait(m);
  qsort(largest, (size_t)samples, sizeof largest[0], by_value);
  return samples % 2 == 1 ? largest[samples / 2] : (largest[samples / 2 - 1] + largest[samples / 2]) / 2;
}

void meeting_tell_wrong(const meeting* m) { __atomic_store_n(&m->room->wrong, 1, __ATOMIC_RELAXED); }

int meeting_is_wrong(const meeting* m) { return __atomic_load_n(&m->room->wrong, __ATOMIC_RELAXED) != 0; }

void meeting_fail(const meeting* m) {
  __atomic_store_n(&m->room->failed, 1, __ATOMIC_RELEASE);
  wake_all(m->room);
  exit(4);
}
