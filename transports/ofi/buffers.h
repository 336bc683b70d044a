// SPDX-License-Identifier: Apache-2.0
//
// Sizes of what a transport allocates at connect.
#pragma once

#include <cstddef>

#include "transports/ofi/wire.h"

namespace ccom::ofi {

// Header and payload. The largest size that rxm copies eagerly (FI_OFI_RXM_BUFFER_SIZE); above it the receiver fetches
// the payload, so a sender could not leave while the receiver sleeps.
inline constexpr size_t kMaxMessageBytes = 16 * 1024;
inline constexpr size_t kMinMessageBytes = 1024;
// Fragments of a channel that may be under way, each with a credit; and written pieces. Several for each rail.
constexpr size_t fragments_under_way(size_t rails) { return rails <= 4 ? 8 : 2 * rails; }
inline constexpr size_t kMaxCredits = fragments_under_way(kMaxRails);
// Per channel, for Grants, which need no credit. A Grant is sent after the previous one has been sent and half of the
// credits (or slots) have been freed since. So at most two of each kind can be outstanding, plus one being posted.
inline constexpr size_t kGrantBuffers = 5;
inline constexpr size_t kHandshakeBuffers =
    8;  // per peer: of the handshake, their repetitions, Goodbye, Acknowledge, Ask, Answer
inline constexpr size_t kControlSends = 6;    // per peer: two of the handshake, Goodbye, Acknowledge, Ask, Answer
inline constexpr size_t kControlBytes = 256;  // size of each
static_assert(sizeof(Header) <= kControlBytes && sizeof(HandshakeMessage) <= kControlBytes);

// Size of a written piece: large enough to amortise its header, small enough to stay in the L2 cache between checksum
// and copy.
inline constexpr size_t kSlotBytes = size_t{256} << 10;
inline constexpr size_t kMinSlotBytes = size_t{32} << 10;  // smaller slots are not worthwhile
inline constexpr size_t kSlots = 4;                        // per channel
inline constexpr size_t kSlotMemoryBytes = size_t{64} << 20;

}  // namespace ccom::ofi
