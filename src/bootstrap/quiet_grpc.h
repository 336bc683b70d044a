// SPDX-License-Identifier: Apache-2.0
//
// Who uses gRPC, and its log meanwhile.
//
// gRPC cannot be used in a forked child once it has run threads in the parent: the child would wait for them, or crash.
//
// Effect on a program that shares gRPC's library with ccom: while a QuietGrpc exists, gRPC's log goes to ccom's log
// hook at debug level; afterwards to gRPC's default. With GRPC_VERBOSITY set, or ccom linked to a private copy of gRPC,
// the program is not affected.
#pragma once

#include "base/status.h"

namespace ccom {

// Any number may exist, in any threads.
class QuietGrpc {
 public:
  QuietGrpc();
  ~QuietGrpc();
  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;
};

// Forked in a child of a process that had a QuietGrpc; to be called before one is made.
Status check_grpc_after_fork();

}  // namespace ccom
