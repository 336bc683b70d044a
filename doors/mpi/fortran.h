// SPDX-License-Identifier: Apache-2.0
//
// Fortran's names under Open MPI, whose own (mpif.h, modules mpi and mpi_f08) call PMPI_ functions, past this library.
// MPICH's and Intel MPI's call MPI_ functions, so they are left as they are.
#pragma once

#include <dlfcn.h>

#include <array>

#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {

// Open MPI's handles of Fortran's, and the addresses that mean MPI_IN_PLACE and MPI_BOTTOM.
struct Fortran {
  using Converter = Handle (*)(int);
  Fortran();
  Converter comm = reinterpret_cast<Converter>(mpi().symbol("PMPI_Comm_f2c"));
  Converter type = reinterpret_cast<Converter>(mpi().symbol("PMPI_Type_f2c"));
  Converter op = reinterpret_cast<Converter>(mpi().symbol("PMPI_Op_f2c"));
  Converter info = reinterpret_cast<Converter>(mpi().symbol("PMPI_Info_f2c"));
  Converter request = reinterpret_cast<Converter>(mpi().symbol("PMPI_Request_f2c"));
  int (*number_of)(Handle request) = reinterpret_cast<int (*)(Handle)>(mpi().symbol("PMPI_Request_c2f"));
  std::array<void*, 3> in_places{}, bottoms{};
};
const Fortran& fortran();

inline Handle comm(const int* number) { return fortran().comm(*number); }
inline Handle type(const int* number) { return fortran().type(*number); }
inline Handle op(const int* number) { return fortran().op(*number); }
void* at(void* buffer);

// The MPI's own function, where that is right already; else null.
template <typename Function>
Function next_of(const char* name) {
  return mpi().is_open_mpi ? nullptr : reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace ccom::mpi

#define CCOM_MPI_EXPORT_FORTRAN extern "C" __attribute__((visibility("default")))

// A function in Fortran by one of its names, and another name of it.
#define CCOM_FORTRAN_ALIAS(alias_name, name, ...) \
  extern "C" __attribute__((visibility("default"), alias(#name))) void alias_name(__VA_ARGS__)

// mpi_x_ is called by programs, ompi_x_f by the functions of mpi_f08. `given`: the names of the arguments.
#define CCOM_FORTRAN(name, given, ...)                                            \
  CCOM_MPI_EXPORT_FORTRAN void mpi_##name##_(__VA_ARGS__);                        \
  CCOM_FORTRAN_ALIAS(ompi_##name##_f, mpi_##name##_, __VA_ARGS__);                \
  static int run_##name(__VA_ARGS__);                                             \
  void mpi_##name##_(__VA_ARGS__) {                                               \
    static const auto next = next_of<decltype(&mpi_##name##_)>("mpi_" #name "_"); \
    if (next != nullptr) return next given;                                       \
    *error = run_##name given;                                                    \
  }                                                                               \
  int run_##name(__VA_ARGS__)
