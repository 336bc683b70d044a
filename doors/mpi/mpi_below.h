// SPDX-License-Identifier: Apache-2.0
//
// The MPI library that the program uses, found in the process when the first call comes: its functions under their
// profiling names (PMPI_...), and the numbers of its binary interface.
//
// One libccom-mpi.so serves two binary interfaces: Open MPI's (4 and 5), whose handles are pointers, and that of MPICH
// (MPICH, Intel MPI, MVAPICH), whose handles are ints. On x86-64 and arm64 both are passed in a register or in a slot
// of eight bytes, so that a function which takes a word is called by either; of an int the upper half is undefined, see
// MpiBelow::plain(). Nothing of MPI is needed to compile this, and nothing of it is an undefined symbol: a preloaded
// library is loaded into processes without MPI, too. tests/mpi compares the numbers with each mpi.h that there is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ccom::mpi {

using Handle = uintptr_t;
using Aint = intptr_t;
using MpiCount = int64_t;

// Of both interfaces.
inline constexpr int kSuccess = 0, kThreadMultiple = 3;

// What differs. Handles of types and operators: handles.cc.
struct Numbers {
  const void* in_place;
  void* status_ignore;
  int undefined, root, max_error_string;
  int err_count, err_arg, err_other, err_intern, err_no_mem, err_in_status;
  size_t status_bytes, error_in_status;  // of MPI_Status, and where its MPI_ERROR is
};
Numbers open_mpi_numbers();
Numbers mpich_numbers();

// name, parameters; each returns an int.
#define CCOM_MPI_FUNCTIONS(X)                                                                                 \
  X(Init, (int*, char***))                                                                                    \
  X(Init_thread, (int*, char***, int, int*))                                                                  \
  X(Initialized, (int*))                                                                                      \
  X(Finalized, (int*))                                                                                        \
  X(Query_thread, (int*))                                                                                     \
  X(Get_library_version, (char*, int*))                                                                       \
  X(Comm_rank, (Handle, int*))                                                                                \
  X(Comm_size, (Handle, int*))                                                                                \
  X(Comm_remote_size, (Handle, int*))                                                                         \
  X(Comm_test_inter, (Handle, int*))                                                                          \
  X(Comm_get_name, (Handle, char*, int*))                                                                     \
  X(Comm_group, (Handle, Handle*))                                                                            \
  X(Group_translate_ranks, (Handle, int, const int*, Handle, int*))                                           \
  X(Group_free, (Handle*))                                                                                    \
  X(Comm_dup, (Handle, Handle*))                                                                              \
  X(Comm_free, (Handle*))                                                                                     \
  X(Comm_create_keyval,                                                                                       \
    (int (*)(Handle, int, void*, void*, void*, int*), int (*)(Handle, int, void*, void*), int*, void*))       \
  X(Comm_set_attr, (Handle, int, void*))                                                                      \
  X(Comm_get_errhandler, (Handle, Handle*))                                                                   \
  X(Comm_set_errhandler, (Handle, Handle))                                                                    \
  X(Errhandler_free, (Handle*))                                                                               \
  X(Comm_call_errhandler, (Handle, int))                                                                      \
  X(Add_error_class, (int*))                                                                                  \
  X(Error_string, (int, char*, int*))                                                                         \
  X(Add_error_code, (int, int*))                                                                              \
  X(Add_error_string, (int, const char*))                                                                     \
  X(Irecv, (void*, int, Handle, int, int, Handle, Handle*))                                                   \
  X(Test, (Handle*, int*, void*))                                                                             \
  X(Wait, (Handle*, void*))                                                                                   \
  X(Cancel, (Handle*))                                                                                        \
  X(Recv_init, (void*, int, Handle, int, int, Handle, Handle*))                                               \
  X(Send, (const void*, int, Handle, int, int, Handle))                                                       \
  X(Start, (Handle*))                                                                                         \
  X(Startall, (int, Handle*))                                                                                 \
  X(Waitall, (int, Handle*, void*))                                                                           \
  X(Waitany, (int, Handle*, int*, void*))                                                                     \
  X(Waitsome, (int, Handle*, int*, int*, void*))                                                              \
  X(Testall, (int, Handle*, int*, void*))                                                                     \
  X(Testany, (int, Handle*, int*, int*, void*))                                                               \
  X(Testsome, (int, Handle*, int*, int*, void*))                                                              \
  X(Request_free, (Handle*))                                                                                  \
  X(Request_get_status, (Handle, int*, void*))                                                                \
  X(Request_get_status_all, (int, const Handle*, int*, void*))                                                \
  X(Request_get_status_any, (int, const Handle*, int*, int*, void*))                                          \
  X(Request_get_status_some, (int, const Handle*, int*, int*, void*))                                         \
  X(Type_dup, (Handle, Handle*))                                                                              \
  X(Type_free, (Handle*))                                                                                     \
  X(Type_size, (Handle, int*))                                                                                \
  X(Type_get_extent, (Handle, Aint*, Aint*))                                                                  \
  X(Pack, (const void*, int, Handle, void*, int, int*, Handle))                                               \
  X(Unpack, (const void*, int, int*, void*, int, Handle, Handle))                                             \
  X(Barrier, (Handle))                                                                                        \
  X(Bcast, (void*, int, Handle, int, Handle))                                                                 \
  X(Allreduce, (const void*, void*, int, Handle, Handle, Handle))                                             \
  X(Reduce, (const void*, void*, int, Handle, Handle, int, Handle))                                           \
  X(Reduce_scatter, (const void*, void*, const int*, Handle, Handle, Handle))                                 \
  X(Reduce_scatter_block, (const void*, void*, int, Handle, Handle, Handle))                                  \
  X(Allgather, (const void*, int, Handle, void*, int, Handle, Handle))                                        \
  X(Allgatherv, (const void*, int, Handle, void*, const int*, const int*, Handle, Handle))                    \
  X(Alltoall, (const void*, int, Handle, void*, int, Handle, Handle))                                         \
  X(Alltoallv, (const void*, const int*, const int*, Handle, void*, const int*, const int*, Handle, Handle))  \
  X(Gather, (const void*, int, Handle, void*, int, Handle, int, Handle))                                      \
  X(Gatherv, (const void*, int, Handle, void*, const int*, const int*, Handle, int, Handle))                  \
  X(Scatter, (const void*, int, Handle, void*, int, Handle, int, Handle))                                     \
  X(Allreduce_c, (const void*, void*, MpiCount, Handle, Handle, Handle))                                      \
  X(Reduce_c, (const void*, void*, MpiCount, Handle, Handle, int, Handle))                                    \
  X(Reduce_scatter_block_c, (const void*, void*, MpiCount, Handle, Handle, Handle))                           \
  X(Bcast_c, (void*, MpiCount, Handle, int, Handle))                                                          \
  X(Allgather_c, (const void*, MpiCount, Handle, void*, MpiCount, Handle, Handle))                            \
  X(Alltoall_c, (const void*, MpiCount, Handle, void*, MpiCount, Handle, Handle))                             \
  X(Gather_c, (const void*, MpiCount, Handle, void*, MpiCount, Handle, int, Handle))                          \
  X(Scatter_c, (const void*, MpiCount, Handle, void*, MpiCount, Handle, int, Handle))                         \
  X(Allgatherv_c, (const void*, MpiCount, Handle, void*, const MpiCount*, const Aint*, Handle, Handle))       \
  X(Gatherv_c, (const void*, MpiCount, Handle, void*, const MpiCount*, const Aint*, Handle, int, Handle))     \
  X(Scatterv_c, (const void*, const MpiCount*, const Aint*, Handle, void*, MpiCount, Handle, int, Handle))    \
  X(Alltoallv_c,                                                                                              \
    (const void*, const MpiCount*, const Aint*, Handle, void*, const MpiCount*, const Aint*, Handle, Handle)) \
  X(Reduce_scatter_c, (const void*, void*, const MpiCount*, Handle, Handle, Handle))                          \
  X(Scatterv, (const void*, const int*, const int*, Handle, void*, int, Handle, int, Handle))

// Persistent calls, since MPI 4; parameters without those that all have at the end, the info and the request.
#define CCOM_MPI_PERSISTENT_FUNCTIONS(X)                                                \
  X(Barrier_init, Handle)                                                               \
  X(Bcast_init, void*, int, Handle, int, Handle)                                        \
  X(Allreduce_init, const void*, void*, int, Handle, Handle, Handle)                    \
  X(Reduce_init, const void*, void*, int, Handle, Handle, int, Handle)                  \
  X(Reduce_scatter_block_init, const void*, void*, int, Handle, Handle, Handle)         \
  X(Allgather_init, const void*, int, Handle, void*, int, Handle, Handle)               \
  X(Alltoall_init, const void*, int, Handle, void*, int, Handle, Handle)                \
  X(Gather_init, const void*, int, Handle, void*, int, Handle, int, Handle)             \
  X(Scatter_init, const void*, int, Handle, void*, int, Handle, int, Handle)            \
  X(Bcast_init_c, void*, MpiCount, Handle, int, Handle)                                 \
  X(Allreduce_init_c, const void*, void*, MpiCount, Handle, Handle, Handle)             \
  X(Reduce_init_c, const void*, void*, MpiCount, Handle, Handle, int, Handle)           \
  X(Reduce_scatter_block_init_c, const void*, void*, MpiCount, Handle, Handle, Handle)  \
  X(Allgather_init_c, const void*, MpiCount, Handle, void*, MpiCount, Handle, Handle)   \
  X(Alltoall_init_c, const void*, MpiCount, Handle, void*, MpiCount, Handle, Handle)    \
  X(Gather_init_c, const void*, MpiCount, Handle, void*, MpiCount, Handle, int, Handle) \
  X(Scatter_init_c, const void*, MpiCount, Handle, void*, MpiCount, Handle, int, Handle)

struct MpiBelow {
#define CCOM_MPI_MEMBER(name, parameters) int(*name) parameters = nullptr;
  CCOM_MPI_FUNCTIONS(CCOM_MPI_MEMBER)
#undef CCOM_MPI_MEMBER
#define CCOM_MPI_MEMBER(name, ...) int (*name)(__VA_ARGS__, Handle, Handle*) = nullptr;
  CCOM_MPI_PERSISTENT_FUNCTIONS(CCOM_MPI_MEMBER)
#undef CCOM_MPI_MEMBER

  bool is_open_mpi = false;
  bool is_known = false;  // one of the two interfaces; else everything is handed down
  Numbers numbers{};
  Handle world = 0, self = 0, comm_null = 0, request_null = 0, errors_return = 0;

  // A handle as its caller means it.
  Handle plain(Handle handle) const { return is_open_mpi ? handle : handle & 0xffffffff; }
  // The symbol in MPI's library or in one that it needs; null: there is none.
  void* symbol(const char* name) const;

  void* library = nullptr;  // of dlopen
};

// Of this process. Found at the first call, which only programs with an MPI make; ends the process without one.
const MpiBelow& mpi();

// An array of the program's handles, each a word or an int.
class HandleArray {
 public:
  explicit HandleArray(void* first) : first_(static_cast<std::byte*>(first)) {}
  Handle get(size_t i) const {
    Handle handle = 0;
    std::memcpy(&handle, first_ + i * bytes_, bytes_);  // the lower bytes come first
    return handle;
  }
  void set(size_t i, Handle handle) { std::memcpy(first_ + i * bytes_, &handle, bytes_); }

 private:
  std::byte* const first_;
  const size_t bytes_ = mpi().is_open_mpi ? sizeof(Handle) : sizeof(int);
};

}  // namespace ccom::mpi
