// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/errors.h"

#include <rdma/fi_errno.h>

namespace ccom::ofi {
namespace {

std::string reason_text(int error, std::string_view reason) {
  std::string text = fi_strerror(error);
  if (!reason.empty() && reason != text) text += " (" + std::string(reason) + ")";
  return text;
}

Status with_cure_for(int error, Status status) {
  switch (error) {
    case FI_EHOSTUNREACH:
      return std::move(status).with_cure(
          "Check routes and firewalls. On EFA: the security group must allow all traffic from and to itself, and the "
          "instances must share a subnet.");
    case FI_ENOMEM: return std::move(status).with_cure("Raise the limit of locked memory (ulimit -l unlimited).");
    case FI_ECONNABORTED:
    case FI_ENOTCONN: return std::move(status).with_cure("See that rank's own log for why it ended.");
    case FI_ENORX:
    case FI_ECRC:
    case FI_EOVERRUN:
      return std::move(status).with_cure("This is a bug in ccom or in the provider: flow control should prevent it.");
    default: return status;
  }
}

}  // namespace

bool blames_peer(int error) {
  switch (error) {
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETUNREACH:
    case FI_ETIMEDOUT:
    case FI_EREMOTEIO:
    case EPIPE: return true;
    default: return false;
  }
}

Status fabric_error(int error, std::string_view what, std::string_view reason) {
  const Code code = error == FI_ENOMEM || error == FI_EMFILE ? Code::OutOfMemory : Code::TransportError;
  Status status(code, std::string(what) + ": " + reason_text(error, reason));
  return with_cure_for(error, std::move(status).with_errno(error));
}

Status peer_error(const Completion& failed, Rank self, Rank peer, std::string_view what) {
  const bool is_out_of_memory = failed.error == FI_ENOMEM;
  const Code code = blames_peer(failed.error) ? Code::RemoteError
                    : is_out_of_memory        ? Code::OutOfMemory
                                              : Code::TransportError;
  Status status = ccom::error(code, "%.*s, rank %d -> %d: %s", static_cast<int>(what.size()), what.data(), self, peer,
                              reason_text(failed.error, failed.reason).c_str());
  return with_cure_for(failed.error, std::move(status).with_errno(failed.error).with_peers({peer}));
}

}  // namespace ccom::ofi
