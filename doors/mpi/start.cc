// SPDX-License-Identifier: Apache-2.0
//
// MPI_Init: all ranks are there, and get the settings of rank 0. In MPI_Finalize an attribute of MPI_COMM_SELF ends
// what is left.
#include "doors/mpi/communicators.h"
#include "doors/mpi/exported.h"

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Init(int* argc, char*** argv) {
  const int result = mpi().Init(argc, argv);
  if (result == kSuccess) Process::get().begin(true);
  return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = mpi().Init_thread(argc, argv, required, provided);
  if (result == kSuccess) Process::get().begin(true);
  return result;
}
