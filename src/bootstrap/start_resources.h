// SPDX-License-Identifier: Apache-2.0
//
// Whether this process can use gRPC, and still start the threads and open the descriptors that a start needs. gRPC
// waits without end or calls abort() where it can start no thread, and reports "handshake failed" where it can open no
// socket.
#pragma once

#include "base/status.h"

namespace ccom {

// OutOfMemory or SystemError with the system's reason and a cure; Forked, see grpc_use.h. To be called before gRPC is
// used.
Status check_start_resources();
// The same but for threads, whose check costs a millisecond: of a rank that may need none of gRPC's.
Status check_start_without_threads();

}  // namespace ccom
