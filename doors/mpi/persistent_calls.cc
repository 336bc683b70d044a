// SPDX-License-Identifier: Apache-2.0
//
// MPI's functions that make persistent calls of equal parts, and their names in Open MPI 4.
#include "doors/mpi/equal_parts.h"
#include "doors/mpi/exported.h"
#include "doors/mpi/large_counts.h"
#include "doors/mpi/requests.h"

namespace ccom::mpi {
namespace {

template <typename... Parameters>
bool is_there(int (*below)(Parameters...)) {
  return below != nullptr;
}
template <typename Large, typename... To>
bool is_there(const LargeOrNot<Large, To...>& below) {
  return below.large != nullptr || below.small != nullptr;
}

// The MPI's own function with the two arguments that all of them have at the end.
template <typename Function>
struct Below {
  template <typename... Given>
  int operator()(Given... given) const {
    if (is_there(function)) return function(given..., info, request);
    mpi().Comm_call_errhandler(comm, mpi().numbers.err_other);
    return mpi().numbers.err_other;
  }
  Function function;
  Handle comm, info;
  Handle* request;
};

template <typename Function>
Below<Function> below(Function function, Handle comm, Handle info, Handle* request) {
  return {function, comm, info, request};
}

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Barrier_init(Handle comm, Handle info, Handle* request) {
  return barrier(Later(request), below(mpi().Barrier_init, comm, info, request), comm);
}
int MPIX_Barrier_init(Handle comm, Handle info, Handle* request) { return MPI_Barrier_init(comm, info, request); }
int MPI_Bcast_init(void* buffer, int count, Handle type, int root, Handle comm, Handle info, Handle* request) {
  return bcast(Later(request), below(mpi().Bcast_init, comm, info, request), buffer, count, type, root, comm);
}
int MPIX_Bcast_init(void* buffer, int count, Handle type, int root, Handle comm, Handle info, Handle* request) {
  return MPI_Bcast_init(buffer, count, type, root, comm, info, request);
}
int MPI_Bcast_init_c(void* buffer, MpiCount count, Handle type, int root, Handle comm, Handle info, Handle* request) {
  return bcast(Later(request), below(large_or_not(mpi().Bcast_init_c, mpi().Bcast_init, comm), comm, info, request),
               buffer, count, type, root, comm);
}
int MPI_Allreduce_init(const void* send, void* recv, int count, Handle type, Handle op, Handle comm, Handle info,
                       Handle* request) {
  return allreduce(Later(request), below(mpi().Allreduce_init, comm, info, request), send, recv, count, type, op, comm);
}
int MPIX_Allreduce_init(const void* send, void* recv, int count, Handle type, Handle op, Handle comm, Handle info,
                        Handle* request) {
  return MPI_Allreduce_init(send, recv, count, type, op, comm, info, request);
}
int MPI_Allreduce_init_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm, Handle info,
                         Handle* request) {
  return allreduce(Later(request),
                   below(large_or_not(mpi().Allreduce_init_c, mpi().Allreduce_init, comm), comm, info, request), send,
                   recv, count, type, op, comm);
}
int MPI_Reduce_init(const void* send, void* recv, int count, Handle type, Handle op, int root, Handle comm, Handle info,
                    Handle* request) {
  return reduce(Later(request), below(mpi().Reduce_init, comm, info, request), send, recv, count, type, op, root, comm);
}
int MPIX_Reduce_init(const void* send, void* recv, int count, Handle type, Handle op, int root, Handle comm,
                     Handle info, Handle* request) {
  return MPI_Reduce_init(send, recv, count, type, op, root, comm, info, request);
}
int MPI_Reduce_init_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, int root, Handle comm,
                      Handle info, Handle* request) {
  return reduce(Later(request), below(large_or_not(mpi().Reduce_init_c, mpi().Reduce_init, comm), comm, info, request),
                send, recv, count, type, op, root, comm);
}
int MPI_Reduce_scatter_block_init(const void* send, void* recv, int count, Handle type, Handle op, Handle comm,
                                  Handle info, Handle* request) {
  return reduce_scatter_block(Later(request), below(mpi().Reduce_scatter_block_init, comm, info, request), send, recv,
                              count, type, op, comm);
}
int MPIX_Reduce_scatter_block_init(const void* send, void* recv, int count, Handle type, Handle op, Handle comm,
                                   Handle info, Handle* request) {
  return MPI_Reduce_scatter_block_init(send, recv, count, type, op, comm, info, request);
}
int MPI_Reduce_scatter_block_init_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm,
                                    Handle info, Handle* request) {
  return reduce_scatter_block(
      Later(request),
      below(large_or_not(mpi().Reduce_scatter_block_init_c, mpi().Reduce_scatter_block_init, comm), comm, info,
            request),
      send, recv, count, type, op, comm);
}
int MPI_Allgather_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                       Handle comm, Handle info, Handle* request) {
  return allgather(Later(request), below(mpi().Allgather_init, comm, info, request), send, sendcount, sendtype, recv,
                   recvcount, recvtype, comm);
}
int MPIX_Allgather_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                        Handle comm, Handle info, Handle* request) {
  return MPI_Allgather_init(send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request);
}
int MPI_Allgather_init_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                         Handle recvtype, Handle comm, Handle info, Handle* request) {
  return allgather(Later(request),
                   below(large_or_not(mpi().Allgather_init_c, mpi().Allgather_init, comm), comm, info, request), send,
                   sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Alltoall_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                      Handle comm, Handle info, Handle* request) {
  return alltoall(Later(request), below(mpi().Alltoall_init, comm, info, request), send, sendcount, sendtype, recv,
                  recvcount, recvtype, comm);
}
int MPIX_Alltoall_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                       Handle comm, Handle info, Handle* request) {
  return MPI_Alltoall_init(send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request);
}
int MPI_Alltoall_init_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                        Handle recvtype, Handle comm, Handle info, Handle* request) {
  return alltoall(Later(request),
                  below(large_or_not(mpi().Alltoall_init_c, mpi().Alltoall_init, comm), comm, info, request), send,
                  sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Gather_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                    int root, Handle comm, Handle info, Handle* request) {
  return gather(Later(request), below(mpi().Gather_init, comm, info, request), send, sendcount, sendtype, recv,
                recvcount, recvtype, root, comm);
}
int MPIX_Gather_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                     int root, Handle comm, Handle info, Handle* request) {
  return MPI_Gather_init(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request);
}
int MPI_Gather_init_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                      Handle recvtype, int root, Handle comm, Handle info, Handle* request) {
  return gather(Later(request), below(large_or_not(mpi().Gather_init_c, mpi().Gather_init, comm), comm, info, request),
                send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Scatter_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                     int root, Handle comm, Handle info, Handle* request) {
  return scatter(Later(request), below(mpi().Scatter_init, comm, info, request), send, sendcount, sendtype, recv,
                 recvcount, recvtype, root, comm);
}
int MPIX_Scatter_init(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                      int root, Handle comm, Handle info, Handle* request) {
  return MPI_Scatter_init(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request);
}
int MPI_Scatter_init_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                       Handle recvtype, int root, Handle comm, Handle info, Handle* request) {
  return scatter(Later(request),
                 below(large_or_not(mpi().Scatter_init_c, mpi().Scatter_init, comm), comm, info, request), send,
                 sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
