// SPDX-License-Identifier: Apache-2.0
//
// Whether this process can open the descriptors that a start needs; and whether it can use gRPC, which waits without
// end or calls abort() where it can start no thread, and reports "handshake failed" where it can open no socket.
#pragma once

#include "base/status.h"

namespace ccom {

// OutOfMemory or SystemError with the system's reason and a cure; Forked, see grpc_use.h. To be called before gRPC is
// used.
Status check_start_resources();
// Of a rank that may not need gRPC.
Status check_start_descriptors();

}  // namespace ccom
