// SPDX-License-Identifier: Apache-2.0
//
// Who uses gRPC: its initialisation, and its log meanwhile.
//
// gRPC cannot be used in a forked child once it has run threads in the parent: the child would wait for them, or crash.
// Nor in a process in which it has run out of memory while it started or ended its threads: that, or the next who
// tries, waits for ever. Here each ends after 10 s.
//
// Effect on a program that shares gRPC's library with ccom: while a GrpcUse exists, gRPC's log goes to ccom's log
// hook at debug level; afterwards to gRPC's default. With GRPC_VERBOSITY set, or ccom linked to a private copy of gRPC,
// the program is not affected.
#pragma once

#include "base/status.h"

namespace ccom {

// Outlives all objects of gRPC. Any number may exist, in any threads.
class GrpcUse {
 public:
  // Throws std::bad_alloc, and std::runtime_error where gRPC's start or end has failed before.
  GrpcUse();
  ~GrpcUse();
  GrpcUse(const GrpcUse&) = delete;
  GrpcUse& operator=(const GrpcUse&) = delete;
};

// Forked in a child of a process that had a GrpcUse; to be called before one is made.
Status check_grpc_after_fork();

}  // namespace ccom
