/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronisation of the ranks of a measurement through a shared file, independent of the library under test, and their
 * settings in the environment (measure.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SYNC_MAX_RANKS 64
#define SYNC_MAX_SAMPLES 2000

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sync_state sync_state;

typedef struct {
  sync_state* state;
  int rank;
  int ranks;
  int spins; /* waiting ranks spin; otherwise they sleep */
} sync_group;

/* The value of an environment variable. If unset: `otherwise`, or, if that is NULL, ends the program. */
const char* sync_setting(const char* name, const char* otherwise);
/* Ends the program with 3. */
void sync_fail_with(const char* what);

/* Opens COMPARE_SYNC; uses COMPARE_WAIT, COMPARE_PIN and COMPARE_TIMEOUT_S. */
sync_group sync_open(int rank, int ranks);
/* Barrier. Ends the program if a rank has failed, or after COMPARE_TIMEOUT_S. */
void sync_wait(const sync_group* m);
/* Rank 0's value, on all ranks. */
int sync_decide(const sync_group* m, double value);
/* This rank's SYNC_MAX_SAMPLES samples, and the median over the first `samples` of the maximum over the ranks, on all
 * ranks. */
double* sync_samples(const sync_group* m);
double sync_median_of_largest(const sync_group* m, int samples);
/* Reports wrong data on this rank; whether any rank has. */
void sync_report_wrong(const sync_group* m);
int sync_is_wrong(const sync_group* m);
/* Ends this program, and soon the others, with exit code 4. */
void sync_fail(const sync_group* m);

#ifdef __cplusplus
} /* extern "C" */
#endif
