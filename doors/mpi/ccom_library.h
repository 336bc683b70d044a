// SPDX-License-Identifier: Apache-2.0
//
// libccom, loaded when the first communicator is opened: what mpirun starts besides ranks, and what ranks start, has
// libccom-mpi.so preloaded too and need not load it.
#pragma once

#include <string>

#include "ccom/ccom.h"

namespace ccom::mpi {

// clang-format off
#define CCOM_LIBRARY_FUNCTIONS(X)                                                                             \
  X(GetLastError) X(GetUniqueId) X(CommInitRankConfig) X(CommCreateGroup) X(CommSplit) X(CommDestroy)         \
  X(CommGetAsyncError) X(StreamCreate) X(StreamDestroy) X(StreamQuery) X(StreamSynchronize) X(StreamRunNext)  \
  X(AllReduce) X(AllGather) X(AllGatherV) X(ReduceScatter) X(ReduceScatterV) X(Broadcast) X(Reduce)           \
  X(AlltoAll) X(AlltoAllV) X(Gather) X(GatherV) X(Scatter) X(ScatterV) X(Barrier)
// clang-format on

struct CcomLibrary {
#define CCOM_LIBRARY_MEMBER(name) decltype(&ccom##name) name = nullptr;
  CCOM_LIBRARY_FUNCTIONS(CCOM_LIBRARY_MEMBER)
#undef CCOM_LIBRARY_MEMBER

  bool is_loaded = false;
  std::string why_not;
};

// Loads it at the first call.
const CcomLibrary& ccom_library();

}  // namespace ccom::mpi
