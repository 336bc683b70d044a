// SPDX-License-Identifier: Apache-2.0
//
// What this library exports: MPI's functions, with handles as words (mpi_below.h).
#pragma once

#include "doors/mpi/mpi_below.h"

#define CCOM_MPI_EXPORT extern "C" __attribute__((visibility("default"))) int

// NOLINTBEGIN(readability-identifier-naming)
CCOM_MPI_EXPORT MPI_Init(int* argc, char*** argv);
CCOM_MPI_EXPORT MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
CCOM_MPI_EXPORT MPI_Barrier(ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Bcast(void* buffer, int count, ccom::mpi::Handle type, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Allreduce(const void* send, void* recv, int count, ccom::mpi::Handle type, ccom::mpi::Handle op,
                              ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce(const void* send, void* recv, int count, ccom::mpi::Handle type, ccom::mpi::Handle op,
                           int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce_scatter(const void* send, void* recv, const int* counts, ccom::mpi::Handle type,
                                   ccom::mpi::Handle op, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce_scatter_block(const void* send, void* recv, int count, ccom::mpi::Handle type,
                                         ccom::mpi::Handle op, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Allgather(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                              ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Allgatherv(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                               const int* counts, const int* displacements, ccom::mpi::Handle recvtype,
                               ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Alltoall(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                             ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Alltoallv(const void* send, const int* sendcounts, const int* sdispls, ccom::mpi::Handle sendtype,
                              void* recv, const int* recvcounts, const int* rdispls, ccom::mpi::Handle recvtype,
                              ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Gather(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                           ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Gatherv(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, const int* counts,
                            const int* displacements, ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Scatter(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                            ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Scatterv(const void* send, const int* counts, const int* displacements, ccom::mpi::Handle sendtype,
                             void* recv, int recvcount, ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm);
// With counts of type MPI_Count, since MPI 4.
CCOM_MPI_EXPORT MPI_Allreduce_c(const void* send, void* recv, ccom::mpi::MpiCount count, ccom::mpi::Handle type,
                                ccom::mpi::Handle op, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce_c(const void* send, void* recv, ccom::mpi::MpiCount count, ccom::mpi::Handle type,
                             ccom::mpi::Handle op, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce_scatter_block_c(const void* send, void* recv, ccom::mpi::MpiCount count,
                                           ccom::mpi::Handle type, ccom::mpi::Handle op, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Bcast_c(void* buffer, ccom::mpi::MpiCount count, ccom::mpi::Handle type, int root,
                            ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Allgather_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype, void* recv,
                                ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Alltoall_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype, void* recv,
                               ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Gather_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype, void* recv,
                             ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, int root,
                             ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Scatter_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype, void* recv,
                              ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, int root,
                              ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Allgatherv_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype,
                                 void* recv, const ccom::mpi::MpiCount* counts, const ccom::mpi::Aint* displacements,
                                 ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Gatherv_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype, void* recv,
                              const ccom::mpi::MpiCount* counts, const ccom::mpi::Aint* displacements,
                              ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Scatterv_c(const void* send, const ccom::mpi::MpiCount* counts,
                               const ccom::mpi::Aint* displacements, ccom::mpi::Handle sendtype, void* recv,
                               ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, int root,
                               ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Alltoallv_c(const void* send, const ccom::mpi::MpiCount* sendcounts, const ccom::mpi::Aint* sdispls,
                                ccom::mpi::Handle sendtype, void* recv, const ccom::mpi::MpiCount* recvcounts,
                                const ccom::mpi::Aint* rdispls, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm);
CCOM_MPI_EXPORT MPI_Reduce_scatter_c(const void* send, void* recv, const ccom::mpi::MpiCount* counts,
                                     ccom::mpi::Handle type, ccom::mpi::Handle op, ccom::mpi::Handle comm);
// Persistent calls, since MPI 4.
CCOM_MPI_EXPORT MPI_Barrier_init(ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Barrier_init(ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Bcast_init(void* buffer, int count, ccom::mpi::Handle type, int root, ccom::mpi::Handle comm,
                               ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Bcast_init(void* buffer, int count, ccom::mpi::Handle type, int root, ccom::mpi::Handle comm,
                                ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Bcast_init_c(void* buffer, ccom::mpi::MpiCount count, ccom::mpi::Handle type, int root,
                                 ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Allreduce_init(const void* send, void* recv, int count, ccom::mpi::Handle type,
                                   ccom::mpi::Handle op, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                   ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Allreduce_init(const void* send, void* recv, int count, ccom::mpi::Handle type,
                                    ccom::mpi::Handle op, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                    ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Allreduce_init_c(const void* send, void* recv, ccom::mpi::MpiCount count, ccom::mpi::Handle type,
                                     ccom::mpi::Handle op, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                     ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Reduce_init(const void* send, void* recv, int count, ccom::mpi::Handle type, ccom::mpi::Handle op,
                                int root, ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Reduce_init(const void* send, void* recv, int count, ccom::mpi::Handle type, ccom::mpi::Handle op,
                                 int root, ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Reduce_init_c(const void* send, void* recv, ccom::mpi::MpiCount count, ccom::mpi::Handle type,
                                  ccom::mpi::Handle op, int root, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                  ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Reduce_scatter_block_init(const void* send, void* recv, int count, ccom::mpi::Handle type,
                                              ccom::mpi::Handle op, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                              ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Reduce_scatter_block_init(const void* send, void* recv, int count, ccom::mpi::Handle type,
                                               ccom::mpi::Handle op, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                               ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Reduce_scatter_block_init_c(const void* send, void* recv, ccom::mpi::MpiCount count,
                                                ccom::mpi::Handle type, ccom::mpi::Handle op, ccom::mpi::Handle comm,
                                                ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Allgather_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                                   int recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm,
                                   ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Allgather_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                                    int recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm,
                                    ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Allgather_init_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype,
                                     void* recv, ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype,
                                     ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Alltoall_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                                  int recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm,
                                  ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Alltoall_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                                   int recvcount, ccom::mpi::Handle recvtype, ccom::mpi::Handle comm,
                                   ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Alltoall_init_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype,
                                    void* recv, ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype,
                                    ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Gather_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                                ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Gather_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                                 ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                 ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Gather_init_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype,
                                  void* recv, ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, int root,
                                  ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Scatter_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv, int recvcount,
                                 ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm, ccom::mpi::Handle info,
                                 ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPIX_Scatter_init(const void* send, int sendcount, ccom::mpi::Handle sendtype, void* recv,
                                  int recvcount, ccom::mpi::Handle recvtype, int root, ccom::mpi::Handle comm,
                                  ccom::mpi::Handle info, ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Scatter_init_c(const void* send, ccom::mpi::MpiCount sendcount, ccom::mpi::Handle sendtype,
                                   void* recv, ccom::mpi::MpiCount recvcount, ccom::mpi::Handle recvtype, int root,
                                   ccom::mpi::Handle comm, ccom::mpi::Handle info, ccom::mpi::Handle* request);
// Functions on requests.
CCOM_MPI_EXPORT MPI_Start(ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Startall(int count, ccom::mpi::Handle* requests);
CCOM_MPI_EXPORT MPI_Wait(ccom::mpi::Handle* request, void* status);
CCOM_MPI_EXPORT MPI_Test(ccom::mpi::Handle* request, int* flag, void* status);
CCOM_MPI_EXPORT MPI_Waitall(int count, ccom::mpi::Handle* requests, void* statuses);
CCOM_MPI_EXPORT MPI_Testall(int count, ccom::mpi::Handle* requests, int* flag, void* statuses);
CCOM_MPI_EXPORT MPI_Waitany(int count, ccom::mpi::Handle* requests, int* index, void* status);
CCOM_MPI_EXPORT MPI_Testany(int count, ccom::mpi::Handle* requests, int* index, int* flag, void* status);
CCOM_MPI_EXPORT MPI_Waitsome(int count, ccom::mpi::Handle* requests, int* outcount, int* indices, void* statuses);
CCOM_MPI_EXPORT MPI_Testsome(int count, ccom::mpi::Handle* requests, int* outcount, int* indices, void* statuses);
CCOM_MPI_EXPORT MPI_Request_free(ccom::mpi::Handle* request);
CCOM_MPI_EXPORT MPI_Request_get_status(ccom::mpi::Handle request, int* flag, void* status);
CCOM_MPI_EXPORT MPI_Request_get_status_all(int count, const ccom::mpi::Handle* requests, int* flag, void* statuses);
CCOM_MPI_EXPORT MPI_Request_get_status_any(int count, const ccom::mpi::Handle* requests, int* index, int* flag,
                                           void* status);
CCOM_MPI_EXPORT MPI_Request_get_status_some(int count, const ccom::mpi::Handle* requests, int* outcount, int* indices,
                                            void* statuses);
// NOLINTEND(readability-identifier-naming)
