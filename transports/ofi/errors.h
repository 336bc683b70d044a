// SPDX-License-Identifier: Apache-2.0
//
// Texts for libfabric's error numbers: errno values below 256, and libfabric's own above.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/types.h"
#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

// The peer is unreachable or gone, as opposed to a local problem.
bool blames_peer(int error);
// "<what>: <reason>", for a failed local call. `error` is positive.
Status fabric_error(int error, std::string_view what, std::string_view reason = {});
// The same for an operation with a peer: RemoteError if the peer is to blame, TransportError otherwise; names it.
Status peer_error(const Completion& failed, Rank self, Rank peer, std::string_view what);

}  // namespace ccom::ofi
