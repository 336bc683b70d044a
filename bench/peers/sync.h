/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the ranks of a measurement meet: a shared file, so that the library under test has no part in it, and what they
 * read from the environment (measure.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MEETING_MOST_RANKS 64
#define MEETING_MOST_SAMPLES 2000

typedef struct meeting_room meeting_room;

typedef struct {
  meeting_room* room;
  int rank;
  int ranks;
  int spins; /* ranks that wait keep their processor; otherwise they sleep */
} meeting;

/* The value of an environment variable. Without one: `otherwise`, or, if that is NULL, the end of the program. */
const char* meeting_setting(const char* name, const char* otherwise);
/* Ends the program with 3. */
void meeting_give_up(const char* what);

/* Opens COMPARE_MEETING, obeys COMPARE_WAIT, COMPARE_PIN and COMPARE_TIMEOUT_S. */
meeting meeting_open(int rank, int ranks);
/* Returns on all ranks when all have come. The end of the program if one has failed; bounded by COMPARE_TIMEOUT_S. */
void meeting_wait(const meeting* m);
/* Rank 0's value, on all ranks. */
int meeting_decide(const meeting* m, double value);
/* This rank's MEETING_MOST_SAMPLES samples, and the median over the first `samples` of the largest rank's, on all
 * ranks. */
double* meeting_samples(const meeting* m);
double meeting_median_of_largest(const meeting* m, int samples);
/* This rank saw wrong data; did any rank? */
void meeting_tell_wrong(const meeting* m);
int meeting_is_wrong(const meeting* m);
/* Ends this program, and soon the others, with 4. */
void meeting_fail(const meeting* m);
