// SPDX-License-Identifier: Apache-2.0
//
// The wire format after the hello: fragments, each a header of 80 bytes and its payload.
//
// A message is split on a fixed grid: fragment i covers [i * grid, min((i + 1) * grid, size)); an empty message is one
// empty fragment. Headers are self-contained, so fragments of one message may use different connections, and each is
// validated against the posted receive before a byte of it is delivered. All fields are little-endian.
//
// Order: messages are numbered per direction of a channel. Numbers never decrease on a connection. The first fragment
// of every message uses connection 0, so an idle receiver polls only that one.
#pragma once

#include <bit>
#include <cstdint>

#include "base/checksum.h"
#include "base/types.h"
#include "transports/transport.h"

namespace ccom::tcp {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

inline constexpr uint32_t kFragmentMagic = 0x47524643;  // "CFRG"
inline constexpr size_t kMaxFragmentBytes = size_t{512} << 10;
// Work limit of one pump of a sender or a receiver, so that the other direction gets its turn.
inline constexpr size_t kPumpBytes = size_t{512} << 10;

// Large enough to amortise headers and system calls, small enough that a fragment is still in a near cache when its
// checksum is computed and when a Sink consumes it: 512 KiB took 0.85 to 0.97 of the time of 256 KiB, 1 MiB no less.
// With several streams a finer grid spreads medium-sized messages over all of them.
constexpr size_t grid_bytes(int streams) { return streams == 1 ? kMaxFragmentBytes : kMaxFragmentBytes / 8; }

struct FragmentHeader {
  Envelope envelope{};
  uint64_t message = 0;       // message number
  uint64_t size_bytes = 0;    // of the message
  uint64_t offset_bytes = 0;  // of this fragment
  uint32_t length_bytes = 0;  // of this fragment
  uint32_t payload_crc = 0;   // 0 without checksums
  uint32_t magic = kFragmentMagic;
  uint32_t header_crc = 0;  // of all preceding fields; always present
};
static_assert(sizeof(FragmentHeader) == 80);

void seal(FragmentHeader& header);
bool is_sealed(const FragmentHeader& header);
// Whether the fragment's offset and length match the grid of its message.
bool is_on_grid(const FragmentHeader& header, size_t grid);
constexpr size_t fragments_of(size_t size_bytes, size_t grid) {
  return size_bytes == 0 ? 1 : (size_bytes - 1) / grid + 1;
}

}  // namespace ccom::tcp
