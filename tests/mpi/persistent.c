/* SPDX-License-Identifier: Apache-2.0
 *
 * Persistent collective calls, and what programs do with their requests: persistent CASE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "persistent.h"

enum { MOST = 32, LONG = 1 << 20 };
static int rank, size;

static void expect(const char* what, long is, long should) {
  if (is == should) return;
  printf("%s on rank %d: %ld instead of %ld\n", what, rank, is, should);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int sum_of_ranks(void) { return size * (size - 1) / 2; }

/* ---- Results --------------------------------------------------------------------------------------------------- */

enum { N = 5 };
static int given[N * MOST * 2], got[N * MOST * 2];

/* What rank `of` gives to rank `to` as element i in that round. */
static int value(int round, int of, int to, int i) { return 1000 * round + 100 * of + 10 * to + i; }

struct made {
  const char* name;
  MPI_Request request;
  int stride; /* 2: a type with gaps */
  int in_place, in_all, from_all, out_all, is_rooted, is_sum, is_bcast;
};

/* Elements for all ranks, or the same for each. */
static void fill(const struct made* m, int round) {
  int* const from = m->in_place ? got : given;
  memset(given, -1, sizeof given);
  memset(got, -1, sizeof got);
  const int own = m->in_place && m->out_all && !m->in_all ? rank : 0; /* block of an allgather or a gather */
  for (int to = 0; to < (m->in_all ? size : 1); ++to)
    for (int i = 0; i < N; ++i) from[((to + own) * N + i) * m->stride] = value(round, rank, m->in_all ? to : 0, i);
}

static int result_of(const struct made* m, int round, int block, int i) {
  if (m->is_bcast) return value(round, size - 1, 0, i);
  if (!m->is_sum) return value(round, m->from_all ? block : size - 1, m->in_all ? rank : 0, i);
  int sum = 0;
  for (int of = 0; of < size; ++of) sum += value(round, of, m->in_all ? rank : 0, i);
  return sum;
}

static void check(const struct made* m, int round) {
  if (m->is_rooted && rank != size - 1) return;
  for (int block = 0; block < (m->out_all ? size : 1); ++block) {
    for (int i = 0; i < N; ++i) expect(m->name, got[(block * N + i) * m->stride], result_of(m, round, block, i));
    if (m->stride == 2 && !m->in_place) expect("a gap", got[(block * N) * 2 + 1], -1);
  }
}

static void use(struct made m) {
  for (int round = 1; round <= 3; ++round) {
    fill(&m, round);
    MPI_Start(&m.request);
    MPI_Wait(&m.request, MPI_STATUS_IGNORE);
    expect("a request that stays", m.request != MPI_REQUEST_NULL, 1);
    check(&m, round);
  }
  MPI_Request_free(&m.request);
  expect("a request that is freed", m.request == MPI_REQUEST_NULL, 1);
}

static void results_of(int stride, int in_place) {
  const int root = size - 1;
  MPI_Datatype type = MPI_INT;
  MPI_Request r;
  if (stride == 2) {
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
  }
  const void* const send = in_place ? MPI_IN_PLACE : given;
  const void* const roots = in_place && rank == root ? MPI_IN_PLACE : in_place ? got : given;
  if (stride == 1) {
    MPI_Allreduce_init(send, got, N, type, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    use((struct made){"allreduce", r, 1, in_place, .is_sum = 1});
    MPI_Reduce_init(roots, rank == root ? got : NULL, N, type, MPI_SUM, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    use((struct made){"reduce", r, 1, in_place, .is_sum = 1, .is_rooted = 1});
    MPI_Reduce_scatter_block_init(send, got, N, type, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    use((struct made){"reduce_scatter_block", r, 1, in_place, .in_all = 1, .is_sum = 1});
  }
  MPI_Bcast_init(got, N, type, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  use((struct made){"bcast", r, stride, 1, .is_bcast = 1});
  MPI_Allgather_init(send, N, type, got, N, type, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  use((struct made){"allgather", r, stride, in_place, .from_all = 1, .out_all = 1});
  MPI_Alltoall_init(send, N, type, got, N, type, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  use((struct made){"alltoall", r, stride, in_place, .in_all = 1, .from_all = 1, .out_all = 1});
  const void* const part = in_place && rank != root ? got + rank * N * stride : roots;
  MPI_Gather_init(part, N, type, got, N, type, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
  use((struct made){"gather", r, stride, in_place, .from_all = 1, .out_all = 1, .is_rooted = 1});
  MPI_Scatter_init(given, N, type, in_place && rank == root ? MPI_IN_PLACE : got, N, type, root, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &r);
  if (in_place && rank == root) {
    for (int round = 0; round < 3; ++round) {
      memset(given, round, sizeof given);
      MPI_Start(&r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r);
  } else if (in_place) {
    for (int round = 0; round < 3; ++round) {
      MPI_Start(&r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      expect("scatter in place", got[0] & 0xff, round);
    }
    MPI_Request_free(&r);
  } else {
    use((struct made){"scatter", r, stride, 0, .in_all = 1});
  }
  if (stride == 2) MPI_Type_free(&type);
}

static void results(void) {
  for (int stride = 1; stride <= 2; ++stride)
    for (int in_place = 0; in_place < 2; ++in_place) results_of(stride, in_place);
  MPI_Request barrier;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
  MPI_Start(&barrier);
  MPI_Wait(&barrier, MPI_STATUS_IGNORE);
  MPI_Request_free(&barrier);
}

/* ---- Order ----------------------------------------------------------------------------------------------------- */

enum { CALLS = 5 };
static int in[CALLS], out[CALLS];
static MPI_Request requests[CALLS + 3];

static void make_sums(MPI_Comm comm) {
  for (int i = 0; i < CALLS; ++i)
    MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
}
static void set(int round) {
  for (int i = 0; i < CALLS; ++i) in[i] = rank + 10 * i + round, out[i] = -1;
}
static void check_sum(int i, int round) { expect("sum", out[i], sum_of_ranks() + size * (10 * i + round)); }
static void free_all(void) {
  for (int i = 0; i < CALLS; ++i) MPI_Request_free(&requests[i]);
}

/* Every rank starts and completes them in an order of its own, which MPI allows, with blocking calls between. */
static void order(void) {
  make_sums(MPI_COMM_WORLD);
  for (int round = 0; round < 200; ++round) {
    set(round);
    for (int i = 0; i < CALLS; ++i) MPI_Start(&requests[rank % 2 == 0 ? i : CALLS - 1 - i]);
    int x = round, y = 0;
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    expect("a blocking call", y, round);
    for (int i = 0; i < CALLS; ++i) {
      const int call = (i * 2 + rank + round) % CALLS;
      MPI_Wait(&requests[call], MPI_STATUS_IGNORE);
      check_sum(call, round);
    }
  }
  /* One is over before the other one is started anywhere else. */
  for (int round = 0; round < 20; ++round) {
    set(round);
    if (rank == 0) MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    check_sum(1, round);
    if (rank != 0) MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check_sum(0, round);
  }
  free_all();
}

/* Rank 0 starts, and waits for a message of a rank that starts only when it has been received. */
static void receive(void) {
  char* const data = malloc(LONG);
  make_sums(MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    set(round);
    if (rank == 1) MPI_Ssend(data, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    MPI_Start(&requests[0]);
    if (rank == 0) MPI_Recv(data, LONG, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check_sum(0, round);
  }
  /* A message moves on while its sender waits for the call, which the receiver starts behind it. */
  for (int round = 0; round < 20; ++round) {
    MPI_Request message = MPI_REQUEST_NULL;
    set(round);
    if (rank == 0) MPI_Isend(data, LONG, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &message);
    if (rank == 1) MPI_Recv(data, LONG, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check_sum(0, round);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
  }
  free_all();
  free(data);
}

/* ---- Functions on requests ------------------------------------------------------------------------------------- */

/* Calls of ccom's, and messages around the ring behind them. */
static int sent, received;
static void start_mixed(int round) {
  set(round);
  sent = 100 * rank + round, received = -1;
  MPI_Startall(CALLS, requests);
  MPI_Irecv(&received, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &requests[CALLS]);
  requests[CALLS + 1] = MPI_REQUEST_NULL;
  MPI_Isend(&sent, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &requests[CALLS + 2]);
}
static void check_mixed(int round) {
  for (int i = 0; i < CALLS; ++i) {
    expect("a request that stays", requests[i] != MPI_REQUEST_NULL, 1);
    check_sum(i, round);
  }
  for (int i = CALLS; i < CALLS + 3; ++i) expect("MPI's own request", requests[i] == MPI_REQUEST_NULL, 1);
  expect("a message", received, 100 * ((rank + 1) % size) + round);
}

enum { ALL = CALLS + 3 };
static void wait_all(void) {
  MPI_Status statuses[ALL];
  MPI_Waitall(ALL, requests, statuses);
  expect("source of the message", statuses[CALLS].MPI_SOURCE, (rank + 1) % size);
  expect("tag of the message", statuses[CALLS].MPI_TAG, 7);
  MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE); /* of inactive ones */
}
static void test_all(void) {
  int flag = 0;
  while (!flag) MPI_Testall(ALL, requests, &flag, MPI_STATUSES_IGNORE);
}
static void wait_any(void) {
  int seen[ALL] = {0}, index;
  for (int i = 0; i < ALL - 1; ++i) {
    MPI_Status status;
    MPI_Waitany(ALL, requests, &index, &status);
    expect("an index, once", index >= 0 && index < ALL && seen[index]++ == 0, 1);
    if (index == CALLS) expect("source of the message", status.MPI_SOURCE, (rank + 1) % size);
  }
  MPI_Waitany(ALL, requests, &index, MPI_STATUS_IGNORE);
  expect("no active one", index, MPI_UNDEFINED);
}
static void test_any(void) {
  int seen[ALL] = {0}, index, flag;
  for (int left = ALL - 1; left > 0;) {
    MPI_Testany(ALL, requests, &index, &flag, MPI_STATUS_IGNORE);
    if (!flag) continue;
    expect("an index, once", index >= 0 && index < ALL && seen[index]++ == 0, 1);
    --left;
  }
  MPI_Testany(ALL, requests, &index, &flag, MPI_STATUS_IGNORE);
  expect("no active one", flag && index == MPI_UNDEFINED, 1);
}
static void some(int (*function)(int, MPI_Request*, int*, int*, MPI_Status*)) {
  int seen[ALL] = {0}, indices[ALL], count;
  for (int left = ALL - 1; left > 0; left -= count) {
    function(ALL, requests, &count, indices, MPI_STATUSES_IGNORE);
    expect("a count", count >= 0 && count <= left, 1);
    for (int i = 0; i < count; ++i) expect("an index, once", seen[indices[i]]++, 0);
  }
  function(ALL, requests, &count, indices, MPI_STATUSES_IGNORE);
  expect("no active one", count, MPI_UNDEFINED);
}
static void wait_some(void) { some(MPI_Waitsome); }
static void test_some(void) { some(MPI_Testsome); }
static void test_each(void) {
  for (int i = 0; i < ALL; ++i) {
    int flag = 0, is_over = 0;
    MPI_Request copy = requests[i]; /* as programs may */
    expect("a copy", copy == requests[i], 1);
    while (!is_over) MPI_Request_get_status(copy, &is_over, MPI_STATUS_IGNORE);
    MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
    expect("what has been over", flag, 1);
  }
}

static void mixed(void) {
  void (*const ways[])(void) = {wait_all, test_all, wait_any, test_any, wait_some, test_some, test_each};
  make_sums(MPI_COMM_WORLD);
  for (int round = 0; round < 140; ++round) {
    start_mixed(round);
    ways[(round + (round % 3 == 0 ? 0 : rank)) % 7]();
    check_mixed(round);
  }
  /* None is over before all ranks have started it. */
  for (int round = 0; round < 3; ++round) {
    int flag = 1, index, count, indices[ALL];
    set(round);
    if (rank == 0) {
      MPI_Startall(CALLS, requests);
      usleep(20000);
      MPI_Testall(CALLS, requests, &flag, MPI_STATUSES_IGNORE);
      expect("all", flag, 0);
      MPI_Testany(CALLS, requests, &index, &flag, MPI_STATUS_IGNORE);
      expect("any", flag, 0);
      MPI_Testsome(CALLS, requests, &count, indices, MPI_STATUSES_IGNORE);
      expect("some", count, 0);
      MPI_Test(&requests[2], &flag, MPI_STATUS_IGNORE);
      expect("one", flag, 0);
      MPI_Request_get_status(requests[2], &flag, MPI_STATUS_IGNORE);
      expect("its status", flag, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) MPI_Startall(CALLS, requests);
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CALLS; ++i) check_sum(i, round);
  }
  free_all();
}

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* Of requests that are freed, what is under way goes on; and their places are used again. */
static void freed(void) {
  enum { MORE = 40 };
  for (int round = 0; round < MORE; ++round) {
    make_sums(MPI_COMM_WORLD);
    set(round);
    MPI_Startall(CALLS, requests);
    MPI_Request_free(&requests[rank % 2]); /* not the same on all ranks */
    MPI_Request copy[CALLS];
    memcpy(copy, requests, sizeof copy);
    MPI_Waitall(CALLS, copy, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CALLS; ++i)
      if (i != rank % 2) check_sum(i, round);
    for (int i = 0; i < CALLS; ++i)
      if (i != rank % 2) MPI_Request_free(&requests[i]);
  }
  MPI_Request never;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &never);
  MPI_Request_free(&never);
}

static void reused(void) {
  make_sums(MPI_COMM_WORLD);
  for (int round = 0; round < 1000; ++round) {
    set(round);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check_sum(0, round);
  }
  free_all();
}

/* More than ccom takes; the program sees no difference. */
static void many(void) {
  enum { MANY = 40 };
  MPI_Request all[MANY];
  int x[MANY], y[MANY];
  for (int i = 0; i < MANY; ++i)
    MPI_Allreduce_init(&x[i], &y[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < MANY; ++i) x[i] = rank + i + round;
    MPI_Startall(MANY, all);
    MPI_Waitall(MANY, all, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; ++i) expect("one of many", y[i], sum_of_ranks() + size * (i + round));
  }
  for (int i = 0; i < MANY; ++i) MPI_Request_free(&all[i]);
}

/* What ccom does not do, beside what it does. */
static void handed_down(void) {
  long double a = rank, b = -1;
  int x = rank, y = -1, alone = -1;
  MPI_Request all[3];
  MPI_Allreduce_init(&a, &b, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[0]);
  MPI_Allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[1]);
  MPI_Allreduce_init(&x, &alone, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &all[2]);
  MPI_Startall(3, all);
  MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
  expect("long double", (long)b, sum_of_ranks());
  expect("int", y, sum_of_ranks());
  expect("alone", alone, rank);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&all[i]);
}

/* The communicator ends first, and another one comes, perhaps with its handle; requests are left at the end. */
static void outlived(void) {
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    make_sums(comm);
    set(round);
    MPI_Startall(CALLS, requests);
    MPI_Comm_free(&comm);
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CALLS; ++i) check_sum(i, round);
    free_all();
  }
}

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

static void say(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  printf("%s on rank %d: %s: %s\n", what, rank, code == MPI_SUCCESS ? "success" : "error", text);
  fflush(stdout);
}

/* Counts that differ are an error of that request alone. */
static void mismatch(void) {
  int x[8] = {0}, y[8];
  MPI_Comm comm;
  MPI_Status statuses[2];
  MPI_Request bad[2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i)
    MPI_Allreduce_init(x, y, i == 1 || rank == 0 ? 4 : 5, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &bad[i]);
  MPI_Start(&bad[0]);
  say("wait", MPI_Wait(&bad[0], MPI_STATUS_IGNORE));
  MPI_Startall(2, bad);
  memset(statuses, 0, sizeof statuses);
  expect("of several", MPI_Waitall(2, bad, statuses), MPI_ERR_IN_STATUS);
  say("status", statuses[0].MPI_ERROR);
  expect("status of the other one", statuses[1].MPI_ERROR, MPI_SUCCESS);
  MPI_Start(&bad[0]);
  int flag = 0, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS) code = MPI_Test(&bad[0], &flag, MPI_STATUS_IGNORE);
  say("test", code);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&bad[i]);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect("the communicator goes on", sum, size);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"results", results},   {"order", order},      {"receive", receive},         {"mixed", mixed},
               {"freed", freed},       {"reused", reused},    {"handed_down", handed_down}, {"many", many},
               {"outlived", outlived}, {"mismatch", mismatch}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  if (rank == 0) printf("%s: done\n", argc > 1 ? argv[1] : "");
  MPI_Finalize();
  return 0;
}
