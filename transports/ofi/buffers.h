// SPDX-License-Identifier: Apache-2.0
//
// Sizes of what a transport allocates at connect.
#pragma once

#include <cstddef>

#include "transports/ofi/wire.h"

namespace ccom::ofi {

// Header and payload. What rxm still copies eagerly (FI_OFI_RXM_BUFFER_SIZE); beyond, it lets the receiver fetch the
// payload, so that a sender could not leave while the receiver sleeps.
inline constexpr size_t kMaxMessageBytes = 16 * 1024;
inline constexpr size_t kMinMessageBytes = 1024;
inline constexpr size_t kMaxCredits = 8;
// Per channel, for Grants, which need no credit. One goes when the one before it is out and half of the credits, or of
// the slots, have gathered since; so at most two of each kind may be unread, and one more is for luck.
inline constexpr size_t kGrantBuffers = 5;
inline constexpr size_t kGreetingBuffers = 6;  // per peer: Hello, Welcome, their repetitions, Goodbye, Acknowledge
inline constexpr size_t kControlSends = 4;     // per peer: Hello, Welcome, Goodbye, Acknowledge
inline constexpr size_t kControlBytes = 192;   // of one of them
static_assert(sizeof(Header) <= kControlBytes && sizeof(Greeting) <= kControlBytes);

// A piece that is written: long enough to hide what its header costs, short enough to stay in a second-level cache
// between the checksum and the copy.
inline constexpr size_t kSlotBytes = size_t{256} << 10;
inline constexpr size_t kMinSlotBytes = size_t{32} << 10;  // below, messages do as well
inline constexpr size_t kSlots = 4;                        // per channel
inline constexpr size_t kSlotMemoryBytes = size_t{64} << 20;
inline constexpr size_t kWindow = 8;  // writes per channel that may be under way

}  // namespace ccom::ofi
