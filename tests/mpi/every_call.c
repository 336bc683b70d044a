/* SPDX-License-Identifier: Apache-2.0
 *
 * Every collective call in every form that MPI allows, then with every argument that it forbids. A line for each case:
 * the class of what it returned and a hash of all its memory, of each rank. The caller compares the lines of runs.
 *
 * Forms with MPI_Count are looked for as programs do that were compiled for any MPI; without them the form with ints is
 * called, whose result is the same. every_call FIRST SECONDS buffers|any [NUMBER_OF_A_CASE_TO_LEAVE_OUT...]. With
 * "buffers" no buffer is NULL or MPI_IN_PLACE where it must not be, which Open MPI does not look at. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kinds.h"

static bool reduces(enum kind kind) { return kind <= RS; }
static bool has_root(enum kind kind) {
  return kind == REDUCE || kind == BCAST || kind == GATHER || kind == SCATTER || kind == GATHERV || kind == SCATTERV;
}
static bool has_lists(enum kind kind) { return kind == RS || (kind >= ALLGATHERV && kind <= ALLTOALLV); }

enum { MOST = 64, ROOM = 1 << 16 };
struct lists {
  int counts[MOST], places[MOST];
  MPI_Count counts_c[MOST];
  MPI_Aint places_c[MOST];
};
struct call {
  enum kind kind;
  bool large;
  const void* send;
  void* recv;
  int sends, recvs; /* elements: of each rank, or of this one */
  MPI_Datatype sendtype, recvtype;
  MPI_Op op;
  int root;
  MPI_Comm comm;
  struct lists *sent, *received; /* of calls with one list that of their root or receivers; NULL: no lists */
  bool no_places;
};

static int call_small(const struct call* c) {
  const int *sc = c->sent ? c->sent->counts : NULL, *sd = c->sent && !c->no_places ? c->sent->places : NULL;
  const int *rc = c->received ? c->received->counts : NULL,
            *rd = c->received && !c->no_places ? c->received->places : NULL;
  switch (c->kind) {
    case ALLREDUCE: return MPI_Allreduce(c->send, c->recv, c->recvs, c->recvtype, c->op, c->comm);
    case REDUCE: return MPI_Reduce(c->send, c->recv, c->recvs, c->recvtype, c->op, c->root, c->comm);
    case RSB: return MPI_Reduce_scatter_block(c->send, c->recv, c->recvs, c->recvtype, c->op, c->comm);
    case RS: return MPI_Reduce_scatter(c->send, c->recv, rc, c->recvtype, c->op, c->comm);
    case BCAST: return MPI_Bcast(c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case ALLGATHER: return MPI_Allgather(c->send, c->sends, c->sendtype, c->recv, c->recvs, c->recvtype, c->comm);
    case ALLTOALL: return MPI_Alltoall(c->send, c->sends, c->sendtype, c->recv, c->recvs, c->recvtype, c->comm);
    case GATHER: return MPI_Gather(c->send, c->sends, c->sendtype, c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case SCATTER: return MPI_Scatter(c->send, c->sends, c->sendtype, c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case ALLGATHERV: return MPI_Allgatherv(c->send, c->sends, c->sendtype, c->recv, rc, rd, c->recvtype, c->comm);
    case GATHERV: return MPI_Gatherv(c->send, c->sends, c->sendtype, c->recv, rc, rd, c->recvtype, c->root, c->comm);
    case SCATTERV: return MPI_Scatterv(c->send, sc, sd, c->sendtype, c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case ALLTOALLV: return MPI_Alltoallv(c->send, sc, sd, c->sendtype, c->recv, rc, rd, c->recvtype, c->comm);
    default: return MPI_Barrier(c->comm);
  }
}

typedef MPI_Count N;
typedef MPI_Aint A;
typedef MPI_Datatype T;
typedef const void* S;

static int call_large(const struct call* c) {
  char name[64];
  snprintf(name, sizeof name, "%s_c", kind_names[c->kind]);
  void* const f = dlsym(RTLD_DEFAULT, name);
  if (f == NULL) return call_small(c);
  const N *sc = c->sent ? c->sent->counts_c : NULL, *rc = c->received ? c->received->counts_c : NULL;
  const A *sd = c->sent && !c->no_places ? c->sent->places_c : NULL,
          *rd = c->received && !c->no_places ? c->received->places_c : NULL;
  switch (c->kind) {
    case ALLREDUCE:
      return ((int (*)(S, void*, N, T, MPI_Op, MPI_Comm))f)(c->send, c->recv, c->recvs, c->recvtype, c->op, c->comm);
    case REDUCE:
      return ((int (*)(S, void*, N, T, MPI_Op, int, MPI_Comm))f)(c->send, c->recv, c->recvs, c->recvtype, c->op,
                                                                 c->root, c->comm);
    case RSB:
      return ((int (*)(S, void*, N, T, MPI_Op, MPI_Comm))f)(c->send, c->recv, c->recvs, c->recvtype, c->op, c->comm);
    case RS:
      return ((int (*)(S, void*, const N*, T, MPI_Op, MPI_Comm))f)(c->send, c->recv, rc, c->recvtype, c->op, c->comm);
    case BCAST: return ((int (*)(void*, N, T, int, MPI_Comm))f)(c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case ALLGATHER:
    case ALLTOALL:
      return ((int (*)(S, N, T, void*, N, T, MPI_Comm))f)(c->send, c->sends, c->sendtype, c->recv, c->recvs,
                                                          c->recvtype, c->comm);
    case GATHER:
    case SCATTER:
      return ((int (*)(S, N, T, void*, N, T, int, MPI_Comm))f)(c->send, c->sends, c->sendtype, c->recv, c->recvs,
                                                               c->recvtype, c->root, c->comm);
    case ALLGATHERV:
      return ((int (*)(S, N, T, void*, const N*, const A*, T, MPI_Comm))f)(c->send, c->sends, c->sendtype, c->recv, rc,
                                                                           rd, c->recvtype, c->comm);
    case GATHERV:
      return ((int (*)(S, N, T, void*, const N*, const A*, T, int, MPI_Comm))f)(c->send, c->sends, c->sendtype, c->recv,
                                                                                rc, rd, c->recvtype, c->root, c->comm);
    case SCATTERV:
      return ((int (*)(S, const N*, const A*, T, void*, N, T, int, MPI_Comm))f)(
          c->send, sc, sd, c->sendtype, c->recv, c->recvs, c->recvtype, c->root, c->comm);
    case ALLTOALLV:
      return ((int (*)(S, const N*, const A*, T, void*, const N*, const A*, T, MPI_Comm))f)(
          c->send, sc, sd, c->sendtype, c->recv, rc, rd, c->recvtype, c->comm);
    default: return MPI_Barrier(c->comm);
  }
}

/* ---- Cases ---------------------------------------------------------------------------------------------------- */

static int world_rank, world_size, number, first, left_out, *leave_out;
static bool has_buffers;
static unsigned seconds; /* of a case, after which the program is ended */
static MPI_Datatype gaps, uncommitted;
static unsigned char given[ROOM], got[ROOM];
static struct lists list;

/* Only cases that both have: a rank outside does not come here. Prints a line on rank 0 of the world. Ranks that have
   no call report success. */
static void run(const struct call* c, bool calls, const char* what) {
  if (++number < first) return;
  for (int i = 0; i < left_out; ++i)
    if (leave_out[i] == number) return;
  for (int i = 0; i < ROOM; ++i) {
    given[i] = (unsigned char)(i * 7 + world_rank * 31 + number);
    got[i] = (unsigned char)(i * 5 + world_rank * 17 + number + 1);
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0)
    printf("begin %d %s%s %s\n", number, kind_names[c->kind], c->large ? "_c" : "", what), fflush(stdout);
  alarm(seconds);
  const int code = !calls ? MPI_SUCCESS : c->large ? call_large(c) : call_small(c);
  int class = -1;
  MPI_Error_class(code, &class);
  uint64_t hash = 1469598103934665603ULL;
  for (int i = 0; i < ROOM; ++i) hash = ((hash ^ given[i]) * 1099511628211ULL ^ got[i]) * 1099511628211ULL;
  const uint64_t mine[2] = {(uint64_t) class, hash};
  uint64_t all[2 * MOST];
  PMPI_Gather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  alarm(0);
  if (world_rank != 0) return;
  printf("case %d %s%s %s:", number, kind_names[c->kind], c->large ? "_c" : "", what);
  for (int i = 0; i < world_size; ++i) printf(" %d/%llx", (int)all[2 * i], (unsigned long long)all[2 * i + 1]);
  printf("\n");
}

static int count_of(int n, int rank) { return n == 0 ? 0 : n + rank % 2; }

/* A right call. In place: as its root, or all ranks, may. */
static struct call right_call(enum kind kind, MPI_Comm comm, bool inter, int n, MPI_Datatype type, bool in_place) {
  int rank, size, peers;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  peers = size;
  if (inter) MPI_Comm_remote_size(comm, &peers);
  struct call c = {kind, false, given, got, n, n, type, type, MPI_SUM, peers - 1, comm, NULL, NULL, false};
  bool is_root = rank == c.root;
  if (inter) { /* the root is rank 0 of the first half */
    is_root = world_rank == 0;
    c.root = is_root ? MPI_ROOT : world_rank % 2 == 0 ? MPI_PROC_NULL : 0;
  }
  if (reduces(kind) && inter && kind >= RSB) c.recvs = n * peers; /* both halves have as many in all */
  const int listed = kind == RS ? size : peers;
  for (int i = 0; i < listed; ++i) {
    const int count = kind == ALLTOALLV ? count_of(n, i + rank) : kind == RS && inter ? n * peers : count_of(n, i);
    list.counts[i] = count, list.counts_c[i] = count;
    list.places[i] = i * (n + 2), list.places_c[i] = i * (n + 2);
  }
  if (has_lists(kind)) {
    if (kind != SCATTERV && (!has_root(kind) || is_root)) c.received = &list;
    if (kind == ALLTOALLV || (kind == SCATTERV && is_root)) c.sent = &list;
    if (kind == ALLGATHERV || kind == GATHERV) c.sends = count_of(n, rank);
    if (kind == SCATTERV) c.recvs = count_of(n, rank);
  }
  if (has_root(kind) && !is_root) { /* what only the root has */
    if (kind == GATHER || kind == GATHERV || kind == REDUCE) c.recv = NULL;
    if (kind == SCATTER || kind == SCATTERV) c.send = NULL;
  }
  if (in_place && (!has_root(kind) || is_root)) {
    if (kind == SCATTER || kind == SCATTERV) {
      c.recv = MPI_IN_PLACE, c.recvs = 0, c.recvtype = MPI_DATATYPE_NULL;
    } else {
      c.send = MPI_IN_PLACE, c.sends = 0, c.sendtype = MPI_DATATYPE_NULL, c.sent = NULL;
    }
  }
  return c;
}

static void run_right_calls(MPI_Comm comm, const char* name, bool inter) {
  static const int counts[] = {0, 1, 700};
  for (enum kind kind = 0; kind < KINDS; ++kind) {
    for (int large = 0; large < 2; ++large) {
      for (int i = 0; i < 3; ++i) {
        for (int derived = 0; derived < (reduces(kind) ? 1 : 2); ++derived) {
          for (int in_place = 0; in_place < (inter || kind == BCAST ? 1 : 2); ++in_place) {
            struct call c = right_call(kind, comm, inter, counts[i], derived ? gaps : MPI_INT, in_place);
            c.large = large;
            if (counts[i] == 0 && !in_place) c.send = NULL;
            char what[128];
            snprintf(what, sizeof what, "on %s, %d elements%s%s", name, counts[i], derived ? " with gaps" : "",
                     in_place ? ", in place" : "");
            run(&c, true, what);
          }
        }
      }
    }
  }
}

/* ---- Mistakes that all ranks make alike ----------------------------------------------------------------------- */

static bool no_comm(struct call* c) { return c->comm = MPI_COMM_NULL, true; }
static bool count_below_0(struct call* c) {
  if (c->kind == BARRIER || c->kind == RS) return false;
  c->sends = c->recvs = -1;
  return true;
}
static bool no_type(struct call* c) { return c->sendtype = c->recvtype = MPI_DATATYPE_NULL, c->kind != BARRIER; }
static bool type_not_committed(struct call* c) {
  return c->sendtype = c->recvtype = uncommitted, c->kind != BARRIER && !reduces(c->kind);
}
static bool no_op(struct call* c) { return c->op = MPI_OP_NULL, reduces(c->kind); }
static bool op_of_other_types(struct call* c) {
  c->sendtype = c->recvtype = MPI_FLOAT;
  return c->op = MPI_BAND, reduces(c->kind);
}
static bool root_below_0(struct call* c) { return c->root = -77, has_root(c->kind); }
static bool root_too_large(struct call* c) { return c->root = world_size, has_root(c->kind); }
static bool send_null(struct call* c) {
  return c->send = NULL, !has_buffers && c->kind != BARRIER && c->kind != BCAST && !has_root(c->kind);
}
static bool recv_null(struct call* c) {
  return c->recv = NULL, !has_buffers && c->kind != BARRIER && (c->kind == BCAST || !has_root(c->kind));
}
static bool in_place_where_others_are_not(struct call* c) {
  c->send = c->recv = MPI_IN_PLACE;
  return !has_buffers && has_root(c->kind) && c->kind != BCAST;
}
static bool received_in_place(struct call* c) {
  return c->recv = MPI_IN_PLACE, c->kind != BARRIER && (c->kind == BCAST || !has_root(c->kind));
}
static bool no_list(struct call* c) { return c->sent = c->received = NULL, has_lists(c->kind) && !has_root(c->kind); }
static bool no_places(struct call* c) {
  return c->no_places = true, has_lists(c->kind) && c->kind != RS && !has_root(c->kind);
}
static bool listed_below_0(struct call* c) {
  list.counts[1] = -1, list.counts_c[1] = -1;
  return has_lists(c->kind) && !has_root(c->kind);
}

static const struct {
  bool (*make)(struct call*);
  const char* name;
} mistakes[] = {{no_comm, "without a communicator"},
                {count_below_0, "with a negative count"},
                {no_type, "without a type"},
                {type_not_committed, "with a type that is not committed"},
                {no_op, "without an operator"},
                {op_of_other_types, "with an operator of other types"},
                {root_below_0, "with a negative root"},
                {root_too_large, "with a root that is too large"},
                {send_null, "from NULL"},
                {recv_null, "to NULL"},
                {in_place_where_others_are_not, "in place on all ranks"},
                {received_in_place, "received in place"},
                {no_list, "without a list of counts"},
                {no_places, "without displacements"},
                {listed_below_0, "with a negative count in the list"}};

static void run_mistakes(void) {
  for (enum kind kind = 0; kind < KINDS; ++kind) {
    for (int large = 0; large < 2; ++large) {
      for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
        MPI_Comm comm; /* another one each time: what a call has left there meets no later one */
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        struct call c = right_call(kind, comm, false, 5, MPI_INT, false);
        c.large = large;
        if (mistakes[i].make(&c)) run(&c, true, mistakes[i].name);
        MPI_Comm_free(&comm);
      }
    }
  }
}

/* ---- Mistakes in what the root alone passes ------------------------------------------------------------------- */

static bool reaches_root(const struct call* c) { return c->kind == REDUCE || c->kind == GATHER || c->kind == GATHERV; }
static bool leaves_root(const struct call* c) { return c->kind == SCATTER || c->kind == SCATTERV; }
static bool root_to_null(struct call* c) { return c->recv = NULL, !has_buffers && reaches_root(c); }
static bool root_from_null(struct call* c) { return c->send = NULL, !has_buffers && leaves_root(c); }
static bool root_without_type(struct call* c) {
  *(leaves_root(c) ? &c->sendtype : &c->recvtype) = MPI_DATATYPE_NULL;
  return reaches_root(c) || leaves_root(c);
}
static bool root_with_type_not_committed(struct call* c) {
  *(leaves_root(c) ? &c->sendtype : &c->recvtype) = uncommitted;
  return leaves_root(c) || (reaches_root(c) && c->kind != REDUCE);
}
static bool root_with_count_below_0(struct call* c) {
  *(leaves_root(c) ? &c->sends : &c->recvs) = -1;
  return !has_lists(c->kind) && (reaches_root(c) || leaves_root(c));
}
static bool root_without_list(struct call* c) {
  return c->sent = c->received = NULL, has_lists(c->kind) && (reaches_root(c) || leaves_root(c));
}
static bool root_without_places(struct call* c) {
  return c->no_places = true, has_lists(c->kind) && (reaches_root(c) || leaves_root(c));
}
static bool root_listed_below_0(struct call* c) {
  return listed_below_0(c) || (has_lists(c->kind) && (reaches_root(c) || leaves_root(c)));
}
static bool root_in_place_at_both(struct call* c) {
  c->send = c->recv = MPI_IN_PLACE;
  return !has_buffers && (reaches_root(c) || leaves_root(c));
}
static bool root_received_in_place(struct call* c) { return c->recv = MPI_IN_PLACE, !has_buffers && reaches_root(c); }

static const struct {
  bool (*make)(struct call*);
  const char* name;
} mistakes_of_root[] = {{root_to_null, "to NULL at the root"},
                        {root_from_null, "from NULL at the root"},
                        {root_without_type, "without a type at the root"},
                        {root_with_type_not_committed, "with a type that is not committed at the root"},
                        {root_with_count_below_0, "with a negative count at the root"},
                        {root_without_list, "without a list of counts at the root"},
                        {root_without_places, "without displacements at the root"},
                        {root_listed_below_0, "with a negative count in the root's list"},
                        {root_in_place_at_both, "in place on both sides at the root"},
                        {root_received_in_place, "received in place at the root"}};

/* Only the root calls: what others get, who do not know of its mistake, the standard does not say. A root whose MPI
   does not notice it waits for them, and the case is left out. */
static void run_mistakes_of_root(void) {
  for (enum kind kind = 0; kind < KINDS; ++kind) {
    for (int large = 0; has_root(kind) && large < 2; ++large) {
      for (size_t i = 0; i < sizeof mistakes_of_root / sizeof *mistakes_of_root; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        struct call c = right_call(kind, comm, false, 5, MPI_INT, false);
        c.large = large;
        if (mistakes_of_root[i].make(&c)) run(&c, world_rank == c.root, mistakes_of_root[i].name);
        MPI_Comm_free(&comm);
      }
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  first = argc > 1 ? atoi(argv[1]) : 1;
  seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
  has_buffers = argc > 3 && strcmp(argv[3], "buffers") == 0;
  left_out = argc > 4 ? argc - 4 : 0;
  leave_out = calloc((size_t)argc, sizeof(int));
  for (int i = 4; i < argc; ++i) leave_out[i - 4] = atoi(argv[i]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &gaps);
  MPI_Type_commit(&gaps);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Comm part, self, half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &part);
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 1, &inter);
  run_right_calls(MPI_COMM_WORLD, "the world", false);
  run_right_calls(part, "a part", false);
  run_right_calls(self, "a rank alone", false);
  run_right_calls(inter, "an intercommunicator", true);
  run_mistakes();
  run_mistakes_of_root();
  if (world_rank == 0) printf("every call: done\n");
  MPI_Comm_free(&part);
  MPI_Comm_free(&self);
  MPI_Comm_free(&half);
  MPI_Comm_free(&inter);
  MPI_Finalize();
  return 0;
}
