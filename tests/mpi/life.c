/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators, threads and processes as programs have them: life CASE */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

static void expect(const char* what, long is, long should) {
  if (is == should) return;
  printf("%s on rank %d: %ld instead of %ld\n", what, rank, is, should);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int sum_over(MPI_Comm comm, int x) {
  int y = -1;
  MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
  return y;
}

static void communicators(void) {
  for (int i = 0; i < 40; ++i) {
    MPI_Comm dup, half, reversed;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(dup, rank % 2, rank, &half);
    MPI_Comm_split(dup, 0, -rank, &reversed);
    int members, first = rank;
    MPI_Comm_size(half, &members);
    expect("dup", sum_over(dup, 1), size);
    expect("half", sum_over(half, 1), members);
    MPI_Bcast(&first, 1, MPI_INT, 0, reversed);
    expect("first of the reversed", first, size - 1);
    MPI_Comm_free(&dup);
    expect("half without its parent", sum_over(half, 2), 2 * members);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
  }
}

/* A part first, when the world has made no call yet. */
static void part_first(void) {
  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, rank, &some);
  if (some != MPI_COMM_NULL) {
    expect("part", sum_over(some, 1), size - 1);
    MPI_Comm_free(&some);
  }
  expect("world", sum_over(MPI_COMM_WORLD, 1), size);
}

static void intercommunicator(void) {
  MPI_Comm half, inter, merged;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  int mine;
  MPI_Comm_size(half, &mine);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, &inter);
  expect("of the other group", sum_over(inter, 1), size - mine);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  expect("merged", sum_over(merged, 1), size);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += 2 * ((int*)in)[i];
}

static void handed_down(void) {
  MPI_Op op;
  int x = 1, y = 0;
  MPI_Op_create(add, 0, &op);
  MPI_Allreduce(&x, &y, 1, MPI_INT, op, MPI_COMM_WORLD);
  if (size == 2) expect("operator of the program", y, 3);
  MPI_Op_free(&op);
  struct {
    double value;
    int place;
  } mine = {rank == 1 ? -1.0 : 1.0, rank}, least;
  MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  expect("place of the least", least.place, 1);
  long double a = 1, b = 0;
  MPI_Allreduce(&a, &b, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  expect("long double", (long)b, size);
  MPI_Bcast(&mine, 1, MPI_DOUBLE_INT, 1, MPI_COMM_WORLD); /* taken: only moved */
  expect("moved", mine.place, 1);
  expect("one rank", sum_over(MPI_COMM_SELF, 5), 5);
}

static void* in_thread(void* of) {
  for (int i = 0; i < 200; ++i) expect("in a thread", sum_over(*(MPI_Comm*)of, i), (long)size * i);
  return NULL;
}

static void threads(int level) {
  enum { THREADS = 4 };
  pthread_t thread[THREADS];
  MPI_Comm comm[THREADS];
  if (level != MPI_THREAD_MULTIPLE) {
    printf("no MPI_THREAD_MULTIPLE here\n");
    return;
  }
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
  for (int i = 0; i < THREADS; ++i) pthread_create(&thread[i], NULL, in_thread, &comm[i]);
  for (int i = 0; i < THREADS; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comm[i]);
}

static void child(void) {
  const pid_t pid = fork();
  int status = -1;
  if (pid == 0) execl("/bin/true", "true", (char*)NULL), _exit(9);
  waitpid(pid, &status, 0);
  if (status != 0) printf("a child ended with %d\n", status), exit(3);
}

#if MPI_VERSION >= 4
static int session(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS)
    return printf("no sessions here\n"), 0;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "ccom", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  int n;
  MPI_Comm_size(comm, &n);
  if (sum_over(comm, 1) != n) return 3;
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  printf("session: done\n");
  return 0;
}
#endif

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  int level = 0;
  if (strcmp(name, "never") == 0) return printf("never: done\n"), 0;
  if (strcmp(name, "session") == 0) {
#if MPI_VERSION >= 4
    return session();
#else
    return printf("no sessions here\n"), 0;
#endif
  }
  if (strcmp(name, "fork") == 0) child();
  if (strcmp(name, "threads") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(name, "communicators") == 0) communicators();
  if (strcmp(name, "part_first") == 0) part_first();
  if (strcmp(name, "intercommunicator") == 0) intercommunicator();
  if (strcmp(name, "handed_down") == 0) handed_down();
  if (strcmp(name, "threads") == 0) threads(level);
  if (strcmp(name, "fork") == 0) {
    expect("before", sum_over(MPI_COMM_WORLD, 1), size);
    child();
    expect("behind", sum_over(MPI_COMM_WORLD, 1), size);
  }
  if (rank == 0) printf("%s: done\n", name);
  MPI_Finalize();
  return 0;
}
