// SPDX-License-Identifier: Apache-2.0
//
// Blocking TCP with deadlines, as needed by the probes. Failures are errno values, 0 on success.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom::doctor {

struct Opened {
  Descriptor socket;
  int failure = 0;
};

// A listener at a numeric address and a free port of CCOM_PORT_RANGE, which is returned in `port`.
Opened listen_at(const std::string& address, uint16_t& port);
Opened connect_to(const std::string& address, uint16_t port, Deadline deadline);
// An accepted connection; failure EAGAIN if there is none before the deadline.
Opened accept_from(int listener, Deadline deadline);
int send_all(int socket, ConstBytes bytes, Deadline deadline);
int receive_all(int socket, Bytes bytes, Deadline deadline);  // ECONNRESET if the peer ends early
int path_mtu(int socket);                                     // 0: unknown

}  // namespace ccom::doctor
