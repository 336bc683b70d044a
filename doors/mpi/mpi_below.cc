// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/mpi_below.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace ccom::mpi {
namespace {

constexpr const char* kLandmark = "PMPI_Allreduce";

// Of a program that is linked with MPI its library is in the global scope; Python's mpi4py brings it in a scope of its
// own. Libraries in the order in which they were loaded.
void* library_with_mpi() {
  std::vector<std::string> names;
  const auto note = [](dl_phdr_info* info, size_t, void* user) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(info->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(note, &names);
  for (const std::string& name : names) {
    void* const library = ::dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (::dlsym(library, kLandmark) != nullptr) return library;  // for the life of the process
    ::dlclose(library);
  }
  return nullptr;
}

// MPICH's library of the MPI standard's own binary interface has other numbers.
bool is_standard_abi(void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && std::strstr(info.dli_fname, "libmpi_abi") != nullptr;
}

bool has_mpich_interface(const MpiBelow& below) {
  if (is_standard_abi(reinterpret_cast<void*>(below.Allreduce))) return false;
  std::array<char, 8192> version{};
  int length = 0;
  if (below.Get_library_version(version.data(), &length) != kSuccess) return false;
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (std::strstr(version.data(), name) != nullptr) return true;
  return false;
}

MpiBelow* find() {
  auto* const found = new MpiBelow;
  found->library = library_with_mpi();
  if (found->library == nullptr) {
    std::fputs("ccom: libccom-mpi.so was called in a process without an MPI library\n", stderr);
    std::abort();
  }
#define CCOM_MPI_FIND(name, parameters) \
  found->name = reinterpret_cast<decltype(found->name)>(found->symbol("PMPI_" #name));
  CCOM_MPI_FUNCTIONS(CCOM_MPI_FIND)
#undef CCOM_MPI_FIND
  // Open MPI 4 has them as extensions.
#define CCOM_MPI_FIND(name, ...)                             \
  for (const char* symbol : {"PMPIX_" #name, "PMPI_" #name}) \
    if (void* const function = found->symbol(symbol)) found->name = reinterpret_cast<decltype(found->name)>(function);
  CCOM_MPI_PERSISTENT_FUNCTIONS(CCOM_MPI_FIND)
#undef CCOM_MPI_FIND
  const auto handle = [&](const char* name) { return reinterpret_cast<Handle>(found->symbol(name)); };
  found->world = handle("ompi_mpi_comm_world");
  if (found->world != 0) {
    found->is_open_mpi = found->is_known = true;
    found->numbers = open_mpi_numbers();
    found->self = handle("ompi_mpi_comm_self");
    found->comm_null = handle("ompi_mpi_comm_null");
    found->request_null = handle("ompi_request_null");
    found->errors_return = handle("ompi_mpi_errors_return");
  } else if (has_mpich_interface(*found)) {
    found->is_known = true;
    found->numbers = mpich_numbers();
    found->world = 0x44000000;
    found->self = 0x44000001;
    found->comm_null = 0x04000000;
    found->request_null = 0x2c000000;
    found->errors_return = 0x54000001;
  }
  return found;
}

}  // namespace

Numbers open_mpi_numbers() {
  return {reinterpret_cast<void*>(1), nullptr, -32766, -4, 256, 2, 13, 16, 17, 39, 18, 24, 8};
}

Numbers mpich_numbers() {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MPICH's constant
  return {reinterpret_cast<void*>(intptr_t{-1}),
          reinterpret_cast<void*>(1),
          -32766,
          -3,
          512,
          2,
          12,
          15,
          16,
          34,
          17,
          20,
          16};
}

void* MpiBelow::symbol(const char* name) const { return ::dlsym(library, name); }

const MpiBelow& mpi() {
  static const MpiBelow* const found = find();
  return *found;
}

}  // namespace ccom::mpi
