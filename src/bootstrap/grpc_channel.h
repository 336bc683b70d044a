// SPDX-License-Identifier: Apache-2.0
//
// A client's connection to a rendezvous server, and what its failures mean.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "base/time.h"
#include "bootstrap/tls_identity.h"
#include "bootstrap/unique_id.h"

namespace ccom {

inline constexpr int kAttemptTimeoutMs = 5000;  // of one attempt to connect

std::shared_ptr<grpc::Channel> open_channel(const UniqueId& id, const TlsIdentity& identity);
gpr_timespec grpc_deadline(Deadline deadline);

// TLS failed: the listener does not hold the secret.
bool is_authentication_failure(const grpc::Status& status);
// Connection refused, lost or shut down: a retry may succeed. Answers from the server itself are not of this kind.
bool is_retryable(const grpc::Status& status);
// "Connection refused" of gRPC's longer text.
std::string reason_of(const grpc::Status& status);

}  // namespace ccom
