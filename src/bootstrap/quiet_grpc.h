// SPDX-License-Identifier: Apache-2.0
//
// gRPC's log, while ccom uses gRPC.
//
// Effect on a program that shares gRPC's library with ccom: while a QuietGrpc exists, gRPC's log goes to ccom's log
// hook at debug level; afterwards to gRPC's default. With GRPC_VERBOSITY set, or ccom linked to a private copy of gRPC,
// the program is not affected.
#pragma once

namespace ccom {

// Any number may exist, in any threads.
class QuietGrpc {
 public:
  QuietGrpc();
  ~QuietGrpc();
  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;
};

}  // namespace ccom
