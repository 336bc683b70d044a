// SPDX-License-Identifier: Apache-2.0
//
// The single encoding of an error: control.proto's Error. The rendezvous, the exchanges of a start, control connections
// and the board carry the same bytes, so all ranks return the same error.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace ccom {

namespace wire {
class Error;
}

// error must not be Ok.
void put_error(const Status& error, wire::Error& message);
// Empty if the message's code is none of an error.
std::optional<Status> error_in(const wire::Error& message);

// Where an error's place is limited, longer texts and lists are cut to these.
inline constexpr size_t kMaxErrorRanks = 256;
inline constexpr size_t kMaxErrorHost = 64;
inline constexpr size_t kMaxErrorText = 1024;
inline constexpr size_t kMaxErrorCure = 256;
// Each number takes five bytes at most; each field has one byte before it, and a length of at most two.
inline constexpr size_t kMaxErrorBytes =
    3 * (1 + 5) + 4 * (1 + 2) + 5 * kMaxErrorRanks + kMaxErrorHost + kMaxErrorText + kMaxErrorCure;

// At most kMaxErrorBytes. error must not be Ok. Throws std::bad_alloc.
std::vector<std::byte> encode_error(const Status& error);
// Empty unless the bytes are exactly one well-formed error.
std::optional<Status> decode_error(ConstBytes bytes);

}  // namespace ccom
