// SPDX-License-Identifier: Apache-2.0
//
// The job's secret and keys derived from it (HMAC-SHA256, HKDF, constant-time comparison), using OpenSSL.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"

namespace ccom {

// 32 bytes that authenticate the job. A value; wiped on destruction; never logged.
class Secret {
 public:
  static constexpr size_t kBytes = 32;
  Secret() = default;
  explicit Secret(std::span<const uint8_t, kBytes> bytes);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  static Secret random();
  // Each bit of one exclusive-or the other's: a uniform secret, encrypted by a mask that is used for it alone.
  Secret masked_by(const Secret& mask) const;
  // Hashes text of any length, fast: for text that nobody has to guess.
  static Secret from_text(std::string_view text);
  // From text that a person may have chosen, by scrypt (RFC 7914; N = 2^14, r = 8, p = 1: tens of milliseconds of a
  // core and 16 MiB for each guess, and for each salt anew).
  static Secret from_passphrase(std::string_view text, std::string_view salt);

  // An independent key for one purpose: HKDF-SHA256 with `label` as info.
  Secret derive(std::string_view label) const;
  std::span<const uint8_t, kBytes> bytes() const { return bytes_; }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

using Mac = std::array<uint8_t, 32>;
Mac hmac_sha256(const Secret& key, ConstBytes message);
// Constant-time.
bool equal_in_constant_time(ConstBytes a, ConstBytes b);
void fill_random(Bytes bytes);
uint64_t random_u64();

}  // namespace ccom
