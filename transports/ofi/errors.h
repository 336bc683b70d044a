// SPDX-License-Identifier: Apache-2.0
//
// libfabric's error numbers as sentences. They are errno's numbers below 256 and libfabric's own above.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/types.h"
#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

// The peer cannot be reached or is gone, as opposed to something that is wrong here.
bool blames_peer(int error);
// "<what>: <reason>", for a call that failed here. `error` is positive.
Status fabric_error(int error, std::string_view what, std::string_view reason = {});
// The same for an operation that concerned a peer: RemoteError if it is to blame, TransportError otherwise; names it.
Status peer_error(const Completion& failed, Rank self, Rank peer, std::string_view what);

}  // namespace ccom::ofi
