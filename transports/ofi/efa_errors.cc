// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/efa_errors.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

namespace ccom::ofi {
namespace {

constexpr std::array kTable = {
    EfaError{1, FI_ECANCELED, "the endpoint was closed during the operation"},
    EfaError{2, FI_EINVAL, "the device's queue pair had an internal error"},
    EfaError{3, FI_EINVAL, "the device does not support this operation"},
    EfaError{4, FI_EINVAL, "the address handle is not valid"},
    EfaError{5, FI_EINVAL, "the local memory is not (or no longer) registered"},
    EfaError{6, FI_EMSGSIZE, "the message exceeds the device's maximum"},
    EfaError{7, FI_EINVAL, "the remote memory is not (or no longer) registered"},
    EfaError{8, FI_ECONNABORTED, "the remote device aborted the operation"},
    EfaError{9, FI_ENOTCONN, "the remote queue pair no longer exists"},
    EfaError{10, FI_ENORX, "the peer had no buffer posted"},
    EfaError{11, FI_EMSGSIZE, "the peer's buffer is too short"},
    EfaError{12, FI_EREMOTEIO, "the remote device returned a bad status"},
    EfaError{13, FI_ECONNABORTED, "the peer stopped answering"},
    EfaError{14, FI_ENOTCONN, "the peer does not know this rank's address"},
    EfaError{15, FI_EHOSTUNREACH, "the peer is unreachable"},
    EfaError{18, FI_EINVAL, "the two devices do not support the same features"},
    EfaError{4105, FI_ENOMEM, "out of memory, or the limit of locked memory is reached"},
    EfaError{4124, FI_ECONNABORTED, "the established peer stopped answering"},
    EfaError{4126, FI_ECONNABORTED, "the peer did not answer the handshake"},
    EfaError{4127, FI_ECONNABORTED, "the peer aborted the operation"},
};

}  // namespace

const EfaError* find_efa_error(int number) {
  const auto found = std::ranges::find(kTable, number, &EfaError::number);
  return found != kTable.end() ? &*found : nullptr;
}

}  // namespace ccom::ofi
