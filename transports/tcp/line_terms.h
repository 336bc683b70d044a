// SPDX-License-Identifier: Apache-2.0
//
// What the two sides of a connection tell each other in their handshake (base/handshake.h): which of the pair's
// connections it is, and the settings that must be equal. Pure; connection_setup.h does the talking.
#pragma once

#include "base/handshake.h"
#include "base/status.h"
#include "base/types.h"

namespace ccom::tcp {

// What this rank brings to every handshake.
struct Identity {
  Rank rank = -1;
  uint64_t communicator = 0;
  Secret key{};
  int streams = 1;
  bool crc = true;
};

// Which connection of a pair.
struct LineId {
  Rank peer = -1;
  int channel = 0;
  int stream = 0;
  bool operator==(const LineId&) const = default;
};

struct LineTerms {
  uint16_t channel = 0;
  uint16_t stream = 0;
  uint16_t channels = 0;  // of this pair
  uint16_t streams = 0;   // per channel
  uint32_t crc = 0;
};

HandshakeIdentity handshake_identity(const Identity& self);
// `channels` is this side's number for the pair.
LineTerms terms_of(const Identity& self, const LineId& id, int channels);
// A ConfigError if the two sides were set up differently. Both find it, each when it has the other's terms.
Status compare_settings(const LineTerms& mine, const LineTerms& theirs, Rank peer);

}  // namespace ccom::tcp
