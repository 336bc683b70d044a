/* SPDX-License-Identifier: Apache-2.0
 *
 * Random collective calls through MPI_ (libccom-mpi.so, preloaded). What is moved is compared with what the MPI below
 * (PMPI_) moves; what is reduced with what this program computes, bit for bit but for sums and products of floats: some
 * MPIs saturate sums of short integers. Types, operators, sizes, roots, communicators and in-place forms at random, the
 * same on all ranks; where MPI allows it, ranks give the same elements with different types.
 *
 * Known bugs of MPIs below are left out with "cautious", for runs in which calls are handed down: saturating sums and
 * signed comparisons of unsigned integers, MPICH 4.0's MPI_Reduce in place, and Intel MPI's MPI_Allgather with
 * different types on different ranks. On a communicator of one rank, which is always the MPI's, logical operators are
 * left out: some of Open MPI's kernels make 0 and 1 of a single operand. random_calls SEED CALLS [LARGEST_COUNT
 * [cautious]] */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"

static uint64_t state;
static unsigned chance(unsigned n) { /* 0 ... n - 1 */
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)((state >> 33) % n);
}

enum family { SIGNED, UNSIGNED, REAL, COMPLEX, LOGICAL, BYTES, OTHER };
struct type {
  MPI_Datatype type;
  const char* name;
  enum family family;
  int size, is_double;
};
struct op {
  MPI_Op op;
  const char* name;
  unsigned families;
};

static struct type types[64];
static int ntypes;
static void add_type(MPI_Datatype type, const char* name, enum family family, int is_double) {
  int size;
  if (type == MPI_DATATYPE_NULL) return;
  PMPI_Type_size(type, &size);
  if (size == 0) return;
  types[ntypes++] = (struct type){type, name, family, size, is_double};
}
#define ADD(type, family) add_type(type, #type, family, 0)

static void add_types(void) {
  ADD(MPI_SIGNED_CHAR, SIGNED);
  ADD(MPI_UNSIGNED_CHAR, UNSIGNED);
  ADD(MPI_SHORT, SIGNED);
  ADD(MPI_UNSIGNED_SHORT, UNSIGNED);
  ADD(MPI_INT, SIGNED);
  ADD(MPI_UNSIGNED, UNSIGNED);
  ADD(MPI_LONG, SIGNED);
  ADD(MPI_UNSIGNED_LONG, UNSIGNED);
  ADD(MPI_LONG_LONG_INT, SIGNED);
  ADD(MPI_UNSIGNED_LONG_LONG, UNSIGNED);
  ADD(MPI_INT8_T, SIGNED);
  ADD(MPI_INT16_T, SIGNED);
  ADD(MPI_INT32_T, SIGNED);
  ADD(MPI_INT64_T, SIGNED);
  ADD(MPI_UINT8_T, UNSIGNED);
  ADD(MPI_UINT16_T, UNSIGNED);
  ADD(MPI_UINT32_T, UNSIGNED);
  ADD(MPI_UINT64_T, UNSIGNED);
  ADD(MPI_AINT, SIGNED);
  ADD(MPI_OFFSET, SIGNED);
  ADD(MPI_COUNT, SIGNED);
  ADD(MPI_FLOAT, REAL);
  add_type(MPI_DOUBLE, "MPI_DOUBLE", REAL, 1);
  ADD(MPI_C_COMPLEX, COMPLEX);
  add_type(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", COMPLEX, 1);
  ADD(MPI_C_BOOL, LOGICAL);
  ADD(MPI_BYTE, BYTES);
  ADD(MPI_CHAR, OTHER);
  ADD(MPI_WCHAR, OTHER);
  ADD(MPI_LONG_DOUBLE, OTHER);
  ADD(MPI_2INT, OTHER);
}

static struct op ops[16];
static int nops;
static void add_ops(void) {
  const unsigned i = 1U << SIGNED | 1U << UNSIGNED, r = 1U << REAL, c = 1U << COMPLEX, l = 1U << LOGICAL,
                 b = 1U << BYTES;
  const struct op all[] = {{MPI_SUM, "MPI_SUM", i | r | c}, {MPI_PROD, "MPI_PROD", i | r | c},
                           {MPI_MAX, "MPI_MAX", i | r},     {MPI_MIN, "MPI_MIN", i | r},
                           {MPI_BAND, "MPI_BAND", i | b},   {MPI_BOR, "MPI_BOR", i | b},
                           {MPI_BXOR, "MPI_BXOR", i | b},   {MPI_LAND, "MPI_LAND", i | l},
                           {MPI_LOR, "MPI_LOR", i | l},     {MPI_LXOR, "MPI_LXOR", i | l}};
  nops = (int)(sizeof all / sizeof *all);
  memcpy(ops, all, sizeof all);
}

/* ---- Data ---------------------------------------------------------------------------------------------------- */

static void fill(void* to, size_t bytes, const struct type* type, unsigned seed) {
  unsigned char* const at = to;
  for (size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)((seed = seed * 1103515245U + 12345U) >> 16);
  if (type->family == LOGICAL)
    for (size_t i = 0; i < bytes; ++i) at[i] &= 1;
  if (type->family == REAL || type->family == COMPLEX) { /* near one, so that products stay finite */
    const size_t n = bytes / (type->is_double ? 8 : 4);
    for (size_t i = 0; i < n; ++i) {
      const double x = 0.5 + (double)((seed = seed * 1103515245U + 12345U) >> 16 & 0xfff) / 4096;
      if (type->is_double)
        ((double*)to)[i] = x;
      else
        ((float*)to)[i] = (float)x;
    }
  }
}

/* ---- What reductions have to be ------------------------------------------------------------------------------- */

static uint64_t integer_at(const unsigned char* at, int size, bool is_signed) {
  uint64_t x = 0;
  memcpy(&x, at, (size_t)size); /* little endian */
  if (is_signed && size < 8 && (x >> (8 * size - 1) & 1) != 0) x |= ~(uint64_t)0 << 8 * size;
  return x;
}

static uint64_t combine(uint64_t x, uint64_t y, MPI_Op op, bool is_signed) {
  const bool is_less = is_signed ? (int64_t)x < (int64_t)y : x < y;
  if (op == MPI_SUM) return x + y;
  if (op == MPI_PROD) return x * y;
  if (op == MPI_MAX) return is_less ? y : x;
  if (op == MPI_MIN) return is_less ? x : y;
  if (op == MPI_BAND) return x & y;
  if (op == MPI_BOR) return x | y;
  if (op == MPI_BXOR) return x ^ y;
  if (op == MPI_LAND) return x && y;
  if (op == MPI_LOR) return x || y;
  return !x != !y;
}

/* to = to op from, n elements. Complex numbers are pairs. */
static void reduce(unsigned char* to, const unsigned char* from, size_t n, const struct type* type, MPI_Op op) {
  for (size_t i = 0; i < n; ++i, to += type->size, from += type->size) {
    if (type->family == REAL || type->family == COMPLEX) {
      const int numbers = type->family == COMPLEX ? 2 : 1;
      double x[2] = {0, 0}, y[2] = {0, 0}, z[2];
      for (int k = 0; k < numbers; ++k) {
        x[k] = type->is_double ? ((double*)to)[k] : (double)((float*)to)[k];
        y[k] = type->is_double ? ((const double*)from)[k] : (double)((const float*)from)[k];
      }
      z[0] = op == MPI_SUM    ? x[0] + y[0]
             : op == MPI_PROD ? x[0] * y[0] - x[1] * y[1]
             : op == MPI_MAX  ? fmax(x[0], y[0])
                              : fmin(x[0], y[0]);
      z[1] = op == MPI_SUM ? x[1] + y[1] : x[0] * y[1] + x[1] * y[0];
      for (int k = 0; k < numbers; ++k) {
        if (type->is_double)
          ((double*)to)[k] = z[k];
        else
          ((float*)to)[k] = (float)z[k];
      }
    } else {
      const bool is_signed = type->family == SIGNED;
      const uint64_t z =
          combine(integer_at(to, type->size, is_signed), integer_at(from, type->size, is_signed), op, is_signed);
      memcpy(to, &z, (size_t)type->size);
    }
  }
}

static bool is_close(const void* a, const void* b, size_t bytes, const struct type* type, const struct op* op) {
  const bool rounds =
      op != NULL && (type->family == REAL || type->family == COMPLEX) && (op->op == MPI_SUM || op->op == MPI_PROD);
  if (!rounds) return memcmp(a, b, bytes) == 0;
  const size_t n = bytes / (type->is_double ? 8 : 4);
  for (size_t i = 0; i < n; ++i) {
    const double x = type->is_double ? ((const double*)a)[i] : (double)((const float*)a)[i];
    const double y = type->is_double ? ((const double*)b)[i] : (double)((const float*)b)[i];
    if (!(fabs(x - y) <= (type->is_double ? 1e-12 : 1e-4) * (1 + fabs(y) * 8))) return false;
  }
  return true;
}

/* ---- Calls --------------------------------------------------------------------------------------------------- */

static int rank, size;
static MPI_Comm comm;
static bool cautious;

struct call {
  enum kind kind;
  const struct type* type;
  const struct op* op;
  int count, root;
  bool in_place, derived;    /* derived: this rank's elements are of a type of pairs */
  int* counts;               /* by rank, for the forms with one list */
  int* displacements;        /* with gaps, in another order */
  int *sendcounts, *sdispls; /* of MPI_Alltoallv */
  MPI_Datatype pairs;        /* two elements */
  MPI_Count *counts_c, *sendcounts_c;
  MPI_Aint *displacements_c, *sdispls_c;
};

#define RUN(P, S)                                                                                                      \
  static int run_##P##S(const struct call* c, void* s, void* r) {                                                      \
    const MPI_Datatype t = c->type->type, m = c->derived ? c->pairs : t;                                               \
    const int n = c->count, k = c->derived ? n / 2 : n;                                                                \
    const bool root = rank == c->root;                                                                                 \
    const void* const in = c->in_place ? MPI_IN_PLACE : s;                                                             \
    switch (c->kind) {                                                                                                 \
      case ALLREDUCE: return P##Allreduce##S(in, r, n, t, c->op->op, comm);                                            \
      case REDUCE: return P##Reduce##S(root ? in : c->in_place ? r : s, r, n, t, c->op->op, c->root, comm);            \
      case RSB: return P##Reduce_scatter_block##S(in, r, n, t, c->op->op, comm);                                       \
      case RS: return P##Reduce_scatter##S(in, r, c->counts##S, t, c->op->op, comm);                                   \
      case BCAST: return P##Bcast##S(r, k, m, c->root, comm);                                                          \
      case ALLGATHER: return P##Allgather##S(in, n, t, r, k, m, comm);                                                 \
      case ALLTOALL: return P##Alltoall##S(in, n, t, r, k, m, comm);                                                   \
      case GATHER: return P##Gather##S(root ? in : s, k, m, r, n, t, c->root, comm);                                   \
      case SCATTER: return P##Scatter##S(s, n, t, root && c->in_place ? MPI_IN_PLACE : r, k, m, c->root, comm);        \
      case ALLGATHERV:                                                                                                 \
        return P##Allgatherv##S(in, c->counts##S[rank], t, r, c->counts##S, c->displacements##S, t, comm);             \
      case GATHERV:                                                                                                    \
        return P##Gatherv##S(root ? in : s, c->counts##S[rank], t, r, c->counts##S, c->displacements##S, t, c->root,   \
                             comm);                                                                                    \
      case SCATTERV:                                                                                                   \
        return P##Scatterv##S(s, c->counts##S, c->displacements##S, t, root && c->in_place ? MPI_IN_PLACE : r,         \
                              c->counts##S[rank], t, c->root, comm);                                                   \
      case ALLTOALLV:                                                                                                  \
        return P##Alltoallv##S(in, c->sendcounts##S, c->sdispls##S, t, r, c->counts##S, c->displacements##S, t, comm); \
      case BARRIER: return P##Barrier(comm);                                                                           \
      default: return MPI_ERR_OTHER;                                                                                   \
    }                                                                                                                  \
  }
RUN(MPI_, )
RUN(PMPI_, )
#if MPI_VERSION >= 4 && !defined OPEN_MPI
#define HAS_COUNTS /* of type MPI_Count */
RUN(MPI_, _c)
#endif

/* The result of this rank: into r. Its input is in s, or in place in r. */
static void expect(const struct call* c, const unsigned char* s, unsigned char* r, int all) {
  const size_t n = c->kind == ALLREDUCE || c->kind == REDUCE ? (size_t)c->count : (size_t)all;
  const size_t bytes = n * (size_t)c->type->size;
  unsigned char *const inputs = malloc(bytes * (size_t)size + 8), *const sum = malloc(bytes + 8);
  PMPI_Allgather(c->in_place ? r : s, (int)bytes, MPI_BYTE, inputs, (int)bytes, MPI_BYTE, comm);
  memcpy(sum, inputs, bytes);
  for (int i = 1; i < size; ++i) reduce(sum, inputs + bytes * (size_t)i, n, c->type, c->op->op);
  size_t first = 0, count = n;
  if (c->kind == RSB) first = (size_t)rank * (size_t)c->count, count = (size_t)c->count;
  if (c->kind == RS) count = (size_t)c->counts[rank];
  for (int i = 0; c->kind == RS && i < rank; ++i) first += (size_t)c->counts[i];
  if (c->kind != REDUCE || rank == c->root)
    memcpy(r, sum + first * (size_t)c->type->size, count * (size_t)c->type->size);
  free(inputs);
  free(sum);
}

/* Counts that all ranks know, and places with gaps in an order from behind. */
static int place(const int* counts, int* displacements) {
  int next = (int)chance(3);
  for (int i = size - 1; i >= 0; --i) {
    displacements[i] = next;
    next += counts[i] + (int)chance(3);
  }
  return next;
}

static bool one_call(int number, int largest) {
  struct call c;
  memset(&c, 0, sizeof c);
  c.kind = (enum kind)chance(KINDS);
  c.type = &types[chance((unsigned)ntypes)];
  const bool reduces = c.kind <= RS;
  if (reduces) {
    do c.op = &ops[chance((unsigned)nops)];
    while ((c.op->families >> c.type->family & 1U) == 0 && c.type->family != OTHER);
    if (c.type->family == OTHER) c.type = &types[4], c.op = &ops[chance(2)]; /* MPI_INT */
  }
  if (reduces && size == 1 && (c.op->op == MPI_LAND || c.op->op == MPI_LOR || c.op->op == MPI_LXOR))
    c.type = &types[4], c.op = &ops[0]; /* MPI_INT, MPI_SUM */
  c.count = chance(8) == 0 ? 0 : 1 + (int)chance((unsigned)(chance(4) == 0 ? largest : 64));
  c.root = (int)chance((unsigned)size);
  c.in_place = chance(3) == 0;
  if (c.kind == REDUCE && (cautious || c.op->op == MPI_LXOR)) c.in_place = false;
  if (reduces && cautious && c.type->family <= UNSIGNED) c.type = &types[4]; /* MPI_INT */
  const bool some_derived = chance(3) == 0 && !cautious; /* on some ranks, which the others cannot know */
  c.derived = some_derived && (rank + number) % 2 == 0 && c.count % 2 == 0;
  c.counts = calloc((size_t)size * 4, sizeof(int));
  c.displacements = c.counts + size;
  c.sendcounts = c.counts + 2 * size;
  c.sdispls = c.counts + 3 * size;
  const bool equal = chance(3) == 0;
  for (int i = 0; i < size; ++i) c.counts[i] = equal ? c.count : (int)chance((unsigned)c.count + 1);
  int all = c.count * size, sent = all;
  if (c.kind ==
      ALLTOALLV) { /* rank i sends (i * 7 + j * 3) % (count + 1) to rank j; in place what i and j swap is equal */
    for (int i = 0; i < size; ++i) {
      c.sendcounts[i] = (rank * 7 + i * 3) % (c.count + 1);
      c.counts[i] = (i * 7 + rank * 3) % (c.count + 1);
      if (c.in_place) c.counts[i] = c.sendcounts[i] = (i + rank) % (c.count + 1);
    }
    sent = place(c.sendcounts, c.sdispls);
    all = place(c.counts, c.displacements);
  } else if (c.kind >= ALLGATHERV && c.kind <= SCATTERV) {
    all = sent = place(c.counts, c.displacements);
  } else if (c.kind == RS) {
    all = 0;
    for (int i = 0; i < size; ++i) all += c.counts[i];
    sent = all;
  }
  MPI_Type_contiguous(2, c.type->type, &c.pairs);
  MPI_Type_commit(&c.pairs);
  const size_t bytes = (size_t)(all > sent ? all : sent) * (size_t)c.type->size + 64;
  unsigned char* const buffers = malloc(4 * bytes);
  unsigned char *s[2] = {buffers, buffers + bytes}, *r[2] = {buffers + 2 * bytes, buffers + 3 * bytes};
  const unsigned seed = (unsigned)(number * 64 + rank);
  for (int i = 0; i < 2; ++i) {
    fill(s[i], bytes, c.type, seed);
    fill(r[i], bytes, c.type, seed + 7919);
  }
  struct call plain = c;
  plain.derived = false;
  if (reduces) expect(&c, s[1], r[1], all);
  const int below = reduces ? MPI_SUCCESS : run_PMPI_(&plain, s[1], r[1]);
  int given;
#ifdef HAS_COUNTS
  c.counts_c = malloc((size_t)size * sizeof(MPI_Count) * 2);
  c.sendcounts_c = c.counts_c + size;
  c.displacements_c = malloc((size_t)size * sizeof(MPI_Aint) * 2);
  c.sdispls_c = c.displacements_c + size;
  for (int i = 0; i < size; ++i) {
    c.counts_c[i] = c.counts[i], c.sendcounts_c[i] = c.sendcounts[i];
    c.displacements_c[i] = c.displacements[i], c.sdispls_c[i] = c.sdispls[i];
  }
  given = (rank + number) % 3 == 0 ? run_MPI__c(&c, s[0], r[0]) : run_MPI_(&c, s[0], r[0]); /* some ranks */
  free(c.counts_c);
  free(c.displacements_c);
#else
  given = run_MPI_(&c, s[0], r[0]);
#endif
  size_t compared = bytes;
  if (reduces && c.in_place && c.kind == RSB) compared = (size_t)c.count * (size_t)c.type->size;
  if (reduces && c.in_place && c.kind == RS) compared = (size_t)c.counts[rank] * (size_t)c.type->size;
  if (c.kind == REDUCE && rank != c.root) compared = 0;
  bool good = below == given && is_close(r[0], r[1], compared, c.type, reduces ? c.op : NULL);
  /* What is sent stays, but in place where it is the root's. */
  if (memcmp(s[0], s[1], bytes) != 0) good = false;
  if (!good) {
    size_t first = 0;
    while (first < compared && r[0][first] == r[1][first]) ++first;
    printf(
        "call %d differs on rank %d of %d: %s %s %s count %d root %d in place %d derived %d: returned %d and %d, byte "
        "%zu of %zu\n",
        number, rank, size, kind_names[c.kind], c.type->name, c.op ? c.op->name : "", c.count, c.root, c.in_place,
        c.derived, given, below, first, compared);
  }
  MPI_Type_free(&c.pairs);
  free(buffers);
  free(c.counts);
  return good;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int seed = argc > 1 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1000,
            largest = argc > 3 ? atoi(argv[3]) : 5000;
  cautious = argc > 4;
  add_types();
  add_ops();
  int world_rank, world_size, wrong = 0, all = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm comms[6];
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, (world_rank + 1) % world_size, &comms[2]);
  int periods = 1, dims = world_size;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 1, &comms[3]);
  comms[4] = MPI_COMM_WORLD;
  comms[5] = MPI_COMM_SELF;
  for (int i = 0; i < calls && wrong < 3; ++i) {
    state = (uint64_t)seed * 1000003 + (uint64_t)i * 7919;
    chance(2);
    comm = comms[chance(6)];
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (comm == comms[1]) state += (uint64_t)(world_rank % 2) * 99991; /* halves go their own ways */
    if (!one_call(i, largest)) ++wrong;
    if (chance(50) == 0) { /* another one under the same handle, perhaps */
      MPI_Comm again;
      MPI_Comm_dup(comm, &again);
      if (comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF) {
        for (int k = 0; k < 4; ++k)
          if (comms[k] == comm) comms[k] = again;
        MPI_Comm_free(&comm);
      } else {
        MPI_Comm_free(&again);
      }
    }
  }
  PMPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) printf(all == 0 ? "%d calls: equal\n" : "%d calls: some differ\n", calls);
  for (int k = 0; k < 4; ++k) MPI_Comm_free(&comms[k]);
  MPI_Finalize();
  return all != 0;
}
