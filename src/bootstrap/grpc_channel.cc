// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

namespace ccom {

std::shared_ptr<grpc::Channel> open_channel(const UniqueId& id, const TlsIdentity& identity) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = identity.certificate;
  tls.pem_cert_chain = identity.certificate;
  tls.pem_private_key = identity.key;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(identity.name);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // ignore https_proxy in the environment
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kAttemptTimeoutMs);
  arguments.SetMaxReceiveMessageSize(-1);  // the server is authenticated
  const bool is_ipv6 = id.address.find(':') != std::string::npos;
  return grpc::CreateCustomChannel((is_ipv6 ? "ipv6:" : "ipv4:") + id.endpoint(), grpc::SslCredentials(tls), arguments);
}

gpr_timespec grpc_deadline(Deadline deadline) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(deadline.left_ms() + 1, GPR_TIMESPAN));
}

bool is_authentication_failure(const grpc::Status& status) {
  const std::string text = status.error_message();
  return text.find("andshake") != std::string::npos || text.find("SSL") != std::string::npos;
}

bool is_retryable(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL: return true;
    default: return false;
  }
}

// The end of "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:4100: Failed to connect to remote
// host: Connection refused", or of "...: Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate
// verify failed".
std::string reason_of(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "no answer";
  const std::string text = status.error_message();
  if (const size_t handshake = text.find("Ssl handshake"); handshake != std::string::npos)
    return text.substr(handshake);
  const size_t colon = text.rfind(": ");
  return colon == std::string::npos || is_authentication_failure(status) ? text : text.substr(colon + 2);
}

}  // namespace ccom
