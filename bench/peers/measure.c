/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data: element i of rank r in generation g is offset(r, g) + i mod 1021, small integers, so that sums are exact in any
 * order, an element of another generation, rank or place is seen, and filling costs no more than a copy.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 64
#define MOST_SAMPLES 2000
#define PERIOD 1021
#define SEPARATE __attribute__((aligned(64)))

/* The shared file. */
typedef struct {
  SEPARATE uint32_t arrived;
  SEPARATE uint32_t generation; /* of the meeting; waiters sleep on it */
  SEPARATE uint32_t wrong;
  uint32_t failed;
  SEPARATE uint64_t decision; /* rank 0's, for all */
  SEPARATE double us[MOST_RANKS][MOST_SAMPLES];
} meeting;

typedef struct {
  const measure_peer* peer;
  meeting* room;
  int rank;
  int ranks;
  int spin;
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

/* ---- Setting ---- */

static void give_up(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(3);
}

static const char* setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  if (value != NULL && value[0] != '\0') return value;
  if (otherwise == NULL) {
    fprintf(stderr, "%s is not set; see bench/peers/measure.h\n", name);
    exit(3);
  }
  return otherwise;
}

void measure_launch(int* rank, int* ranks) {
  *rank = atoi(setting("COMPARE_RANK", NULL));
  *ranks = atoi(setting("COMPARE_RANKS", NULL));
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
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) give_up("sched_getaffinity failed");
  skip = rank % CPU_COUNT(&allowed);
  for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) break;
  }
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) give_up("sched_setaffinity failed");
}

static measure_collective collective_named(const char* name) {
  int i;
  for (i = 0; i < 3; ++i) {
    if (strcmp(name, kNames[i]) == 0) return (measure_collective)i;
  }
  fprintf(stderr, "COMPARE_COLLECTIVE=%s is not known\n", name);
  exit(3);
}

static meeting* open_meeting(const char* path) {
  void* room;
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(meeting)) != 0) {
    fprintf(stderr, "open %s: %s\n", path, strerror(errno));
    exit(3);
  }
  room = mmap(NULL, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (room == MAP_FAILED) give_up("mmap of COMPARE_MEETING failed");
  return (meeting*)room;
}

/* ---- Meeting ---- */

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Returns on all ranks when all have come. The alarm of measure_run bounds it. */
static void meet(const bench* b) {
  meeting* room = b->room;
  const uint32_t generation = __atomic_load_n(&room->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&room->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)b->ranks) {
    __atomic_store_n(&room->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&room->generation, generation + 1, __ATOMIC_RELEASE);
    if (!b->spin) syscall(SYS_futex, &room->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return;
  }
  while (__atomic_load_n(&room->generation, __ATOMIC_ACQUIRE) == generation) {
    if (b->spin) {
      relax();
    } else {
      syscall(SYS_futex, &room->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
    }
    if (__atomic_load_n(&room->failed, __ATOMIC_RELAXED) != 0) exit(4);
  }
}

/* Rank 0's value, on all ranks. */
static int decide(const bench* b, double value) {
  int decision;
  if (b->rank == 0) __atomic_store_n(&b->room->decision, (uint64_t)value, __ATOMIC_RELEASE);
  meet(b);
  decision = (int)__atomic_load_n(&b->room->decision, __ATOMIC_ACQUIRE);
  meet(b);
  return decision;
}

/* ---- Data ---- */

static float offset(int rank, unsigned generation) { return (float)((unsigned)rank * 7 + generation * 13) + 1; }

/* buffer[i] = first + step * (i mod PERIOD) */
static void write_ramp(float* buffer, size_t count, float first) {
  size_t start;
  size_t i;
  for (start = 0; start < count; start += PERIOD) {
    const size_t length = count - start < PERIOD ? count - start : PERIOD;
    for (i = 0; i < length; ++i) buffer[start + i] = first + (float)(int)i;
  }
}

/* The number of elements that differ from first + factor * ((i + skip) mod PERIOD). The first one is told on stderr. */
static size_t differing(const bench* b, const char* what, const float* buffer, size_t count, float first, float factor,
                        size_t skip) {
  size_t wrong = 0;
  size_t place = skip % PERIOD;
  size_t i;
  for (i = 0; i < count; ++i) {
    const float expected = first + factor * (float)(int)place;
    if (buffer[i] != expected && wrong++ == 0) {
      fprintf(stderr, "%s: wrong data: %s, rank %d of %d, %s[%zu] is %g, expected %g (%zu elements)\n",
              setting("COMPARE_PEER", "peer"), kNames[b->collective], b->rank, b->ranks, what, i, (double)buffer[i],
              (double)expected, count);
    }
    if (++place == PERIOD) place = 0;
  }
  return wrong;
}

static void write_input(bench* b) {
  b->written = (b->written + 1) % 97;
  write_ramp(b->send, b->send_count, offset(b->rank, b->written));
}

static void verify(const bench* b) {
  size_t wrong = differing(b, "send", b->send, b->send_count, offset(b->rank, b->written), 1, 0);
  float sum = 0;
  int rank;
  for (rank = 0; rank < b->ranks; ++rank) sum += offset(rank, b->written);
  if (b->collective == MEASURE_ALLGATHER) {
    for (rank = 0; rank < b->ranks; ++rank) {
      wrong += differing(b, "recv", b->recv + (size_t)rank * b->count, b->count, offset(rank, b->written), 1, 0);
    }
  } else {
    const size_t skip = b->collective == MEASURE_REDUCE_SCATTER ? (size_t)b->rank * b->count : 0;
    wrong += differing(b, "recv", b->recv, b->recv_count, sum, (float)b->ranks, skip);
  }
  if (wrong != 0) __atomic_store_n(&b->room->wrong, 1, __ATOMIC_RELAXED);
}

/* ---- Measuring ---- */

static void call(const bench* b) {
  if (b->peer->call(b->collective, b->send, b->recv, b->count) == 0) return;
  fprintf(stderr, "%s: %s of %zu elements failed on rank %d\n", setting("COMPARE_PEER", "peer"), kNames[b->collective],
          b->count, b->rank);
  __atomic_store_n(&b->room->failed, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &b->room->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  exit(4);
}

/* Microseconds per call of `calls` calls back to back, on this rank. */
static double timed(const bench* b, int calls) {
  double start;
  int i;
  meet(b);
  start = now_us();
  for (i = 0; i < calls; ++i) call(b);
  return (now_us() - start) / calls;
}

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return (a > b) - (a < b);
}

/* The median over the samples of the slowest rank. On all ranks. */
static double median_of_slowest(const bench* b, int samples) {
  double slowest[MOST_SAMPLES];
  int i;
  int rank;
  meet(b);
  for (i = 0; i < samples; ++i) {
    slowest[i] = 0;
    for (rank = 0; rank < b->ranks; ++rank) {
      if (b->room->us[rank][i] > slowest[i]) slowest[i] = b->room->us[rank][i];
    }
  }
  meet(b);
  qsort(slowest, (size_t)samples, sizeof slowest[0], by_value);
  return samples % 2 == 1 ? slowest[samples / 2] : (slowest[samples / 2 - 1] + slowest[samples / 2]) / 2;
}

static double clamp(double value, double low, double high) {
  return value < low ? low : value > high ? high : value;
}

/* How long a call takes, roughly, when the library is warm. Slow calls are not worth a warm-up. */
static double estimate_us(const bench* b) {
  double each;
  const int probe = decide(b, clamp(5e4 / timed(b, 1), 0, 100));
  if (probe == 0) return 1e9;
  timed(b, probe);
  each = timed(b, probe);
  return each < 0.05 ? 0.05 : each;
}

static void measure(bench* b) {
  double* mine = b->room->us[b->rank];
  const double each = estimate_us(b);
  /* A meeting of sleeping ranks costs about as much as this many microseconds. */
  const double meeting_us = b->spin ? 1 : 20 * b->ranks;
  const int batches = decide(b, clamp(b->budget_us / each, 3, 7));
  const int calls = decide(b, clamp(b->budget_us / batches / each, 1, 20000));
  const int samples = decide(b, clamp(b->budget_us / (each + meeting_us), 3, MOST_SAMPLES));
  double loop_us;
  double sync_us;
  int i;
  for (i = 0; i < batches; ++i) {
    write_input(b);
    mine[i] = timed(b, calls);
  }
  loop_us = median_of_slowest(b, batches);
  verify(b);
  write_input(b);
  for (i = 0; i < samples; ++i) {
    if (b->dirty) write_input(b);
    mine[i] = timed(b, 1);
  }
  sync_us = median_of_slowest(b, samples);
  verify(b);
  meet(b);
  if (b->rank == 0) {
    const size_t larger = b->send_count > b->recv_count ? b->send_count : b->recv_count;
    printf("{\"peer\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"loop_us\": %.3f, "
           "\"sync_us\": %.3f, \"batches\": %d, \"calls\": %d, \"samples\": %d, \"verified\": %s}\n",
           setting("COMPARE_PEER", "peer"), kNames[b->collective], b->ranks, larger * sizeof(float), loop_us, sync_us,
           batches, calls, samples, b->room->wrong == 0 ? "true" : "false");
    fflush(stdout);
  }
  meet(b);
}

static void* private_pages(size_t bytes) {
  void* pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

static void measure_count(bench* b, size_t count) {
  const size_t all = count * (size_t)b->ranks;
  size_t send_bytes;
  size_t recv_bytes;
  b->count = count;
  b->send_count = b->collective == MEASURE_REDUCE_SCATTER ? all : count;
  b->recv_count = b->collective == MEASURE_ALLGATHER ? all : count;
  send_bytes = b->send_count * sizeof(float);
  recv_bytes = b->recv_count * sizeof(float);
  b->send = (float*)(b->peer->allocate != NULL ? b->peer->allocate(send_bytes) : private_pages(send_bytes));
  b->recv = (float*)(b->peer->allocate != NULL ? b->peer->allocate(recv_bytes) : private_pages(recv_bytes));
  if (b->send == NULL || b->recv == NULL) give_up("not enough memory for the buffers");
  write_input(b);
  memset(b->recv, 0xff, recv_bytes);
  timed(b, 1);
  verify(b);
  measure(b);
  if (b->peer->release != NULL) {
    b->peer->release(b->send, send_bytes);
    b->peer->release(b->recv, recv_bytes);
  } else {
    munmap(b->send, send_bytes);
    munmap(b->recv, recv_bytes);
  }
}

int measure_run(const measure_peer* peer, int rank, int ranks) {
  bench b = {0};
  const char* wait = setting("COMPARE_WAIT", "");
  const char* text = setting("COMPARE_SIZES", NULL);
  size_t last = 0;
  if (ranks > MOST_RANKS) give_up("too many ranks");
  alarm((unsigned)atoi(setting("COMPARE_TIMEOUT_S", "600")));
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  b.peer = peer;
  b.rank = rank;
  b.ranks = ranks;
  b.spin = wait[0] == '\0' ? ranks <= processors() : strcmp(wait, "spin") == 0;
  b.dirty = atoi(setting("COMPARE_DIRTY", "0"));
  b.budget_us = atof(setting("COMPARE_BUDGET_MS", "100")) * 1e3;
  b.collective = collective_named(setting("COMPARE_COLLECTIVE", NULL));
  b.room = open_meeting(setting("COMPARE_MEETING", NULL));
  if (atoi(setting("COMPARE_PIN", "0")) != 0) pin(rank);
  if (rank == 0) {
    printf("{\"peer\": \"%s\", \"version\": \"%s\"}\n", setting("COMPARE_PEER", "peer"), peer->version);
    fflush(stdout);
  }
  while (*text != '\0') {
    char* end;
    const size_t bytes = strtoull(text, &end, 10);
    const size_t divisor = sizeof(float) * (b.collective == MEASURE_ALLREDUCE ? 1 : (size_t)ranks);
    const size_t count = bytes < divisor ? 1 : bytes / divisor;
    if (end == text || (*end != ',' && *end != '\0')) give_up("COMPARE_SIZES is not a list of numbers");
    if (count != last) measure_count(&b, count);
    last = count;
    text = *end == ',' ? end + 1 : end;
  }
  return b.room->wrong == 0 ? 0 : 1;
}
