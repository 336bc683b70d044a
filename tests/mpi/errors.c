/* SPDX-License-Identifier: Apache-2.0
 *
 * How errors of calls that ccom has taken look in an MPI program: errors CASE */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, handled;

static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  handled = *code;
}

static void say(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0, class = -1;
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  const char* const name = class == MPI_ERR_OTHER ? "MPI_ERR_OTHER"
                           : class == MPI_ERR_ARG ? "MPI_ERR_ARG"
                           : class == MPI_SUCCESS ? "MPI_SUCCESS"
                                                  : "another class";
  printf("%s on rank %d: %s: %s\n", what, rank, name, text);
  fflush(stdout);
}

static int unequal(MPI_Comm comm) {
  int x[8] = {0}, y[8];
  return MPI_Allreduce(x, y, rank == 0 ? 4 : 5, MPI_INT, MPI_SUM, comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* const name = argc > 1 ? argv[1] : "";
  int x = 1, y = 0;
  MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(name, "returned") == 0) {
    MPI_Comm part;
    MPI_Comm_dup(MPI_COMM_WORLD, &part);
    MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN);
    const int first = unequal(part);
    say("first", first);
    say("again", MPI_Barrier(part));
    MPI_Comm_free(&part);
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("the world has %d\n", y);
  } else if (strcmp(name, "handled") == 0) {
    MPI_Errhandler mine;
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    const int code = unequal(MPI_COMM_WORLD);
    printf("handler of rank %d: %s\n", rank, handled != 0 && handled == code ? "called with the code" : "not called");
  } else if (strcmp(name, "fatal") == 0) {
    unequal(MPI_COMM_WORLD);
    printf("not reached\n");
  } else if (strcmp(name, "forbidden") == 0) {
    int from[8] = {0}, to[64];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("forbidden", MPI_Allgather(from, 2, MPI_INT, to, 4, MPI_INT, MPI_COMM_WORLD));
  } else if (strcmp(name, "killed") == 0) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) raise(SIGKILL);
    say("killed", MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MPI_Abort(MPI_COMM_WORLD, 7);
  }
  MPI_Finalize();
  return 0;
}
