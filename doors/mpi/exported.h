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
// NOLINTEND(readability-identifier-naming)
