// SPDX-License-Identifier: Apache-2.0
//
// MPI's functions of equal parts, in place of the MPI below. Names and arguments are MPI's.
#include "doors/mpi/equal_parts.h"
#include "doors/mpi/exported.h"
#include "doors/mpi/large_counts.h"

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Barrier(Handle comm) { return barrier(AtOnce(), mpi().Barrier, comm); }
int MPI_Allreduce(const void* send, void* recv, int count, Handle type, Handle op, Handle comm) {
  return allreduce(AtOnce(), mpi().Allreduce, send, recv, count, type, op, comm);
}
int MPI_Allreduce_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm) {
  return allreduce(AtOnce(), large_or_not(mpi().Allreduce_c, mpi().Allreduce, comm), send, recv, count, type, op, comm);
}
int MPI_Reduce(const void* send, void* recv, int count, Handle type, Handle op, int root, Handle comm) {
  return reduce(AtOnce(), mpi().Reduce, send, recv, count, type, op, root, comm);
}
int MPI_Reduce_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, int root, Handle comm) {
  return reduce(AtOnce(), large_or_not(mpi().Reduce_c, mpi().Reduce, comm), send, recv, count, type, op, root, comm);
}
int MPI_Reduce_scatter_block(const void* send, void* recv, int count, Handle type, Handle op, Handle comm) {
  return reduce_scatter_block(AtOnce(), mpi().Reduce_scatter_block, send, recv, count, type, op, comm);
}
int MPI_Reduce_scatter_block_c(const void* send, void* recv, MpiCount count, Handle type, Handle op, Handle comm) {
  return reduce_scatter_block(AtOnce(), large_or_not(mpi().Reduce_scatter_block_c, mpi().Reduce_scatter_block, comm),
                              send, recv, count, type, op, comm);
}
int MPI_Bcast(void* buffer, int count, Handle type, int root, Handle comm) {
  return bcast(AtOnce(), mpi().Bcast, buffer, count, type, root, comm);
}
int MPI_Bcast_c(void* buffer, MpiCount count, Handle type, int root, Handle comm) {
  return bcast(AtOnce(), large_or_not(mpi().Bcast_c, mpi().Bcast, comm), buffer, count, type, root, comm);
}
int MPI_Allgather(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                  Handle comm) {
  return allgather(AtOnce(), mpi().Allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Allgather_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                    Handle recvtype, Handle comm) {
  return allgather(AtOnce(), large_or_not(mpi().Allgather_c, mpi().Allgather, comm), send, sendcount, sendtype, recv,
                   recvcount, recvtype, comm);
}
int MPI_Alltoall(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype,
                 Handle comm) {
  return alltoall(AtOnce(), mpi().Alltoall, send, sendcount, sendtype, recv, recvcount, recvtype, comm);
}
int MPI_Alltoall_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                   Handle recvtype, Handle comm) {
  return alltoall(AtOnce(), large_or_not(mpi().Alltoall_c, mpi().Alltoall, comm), send, sendcount, sendtype, recv,
                  recvcount, recvtype, comm);
}
int MPI_Gather(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype, int root,
               Handle comm) {
  return gather(AtOnce(), mpi().Gather, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Gather_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount, Handle recvtype,
                 int root, Handle comm) {
  return gather(AtOnce(), large_or_not(mpi().Gather_c, mpi().Gather, comm), send, sendcount, sendtype, recv, recvcount,
                recvtype, root, comm);
}
int MPI_Scatter(const void* send, int sendcount, Handle sendtype, void* recv, int recvcount, Handle recvtype, int root,
                Handle comm) {
  return scatter(AtOnce(), mpi().Scatter, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}
int MPI_Scatter_c(const void* send, MpiCount sendcount, Handle sendtype, void* recv, MpiCount recvcount,
                  Handle recvtype, int root, Handle comm) {
  return scatter(AtOnce(), large_or_not(mpi().Scatter_c, mpi().Scatter, comm), send, sendcount, sendtype, recv,
                 recvcount, recvtype, root, comm);
}
