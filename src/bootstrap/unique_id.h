// SPDX-License-Identifier: Apache-2.0
//
// The unique id: the rendezvous address of one communicator, the communicator's number, and the secret that
// authenticates its ranks, packed into the 128 bytes of ccomUniqueId. Whoever holds the bytes can join, so treat them
// like a password.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "base/status.h"
#include "base/tcp_socket.h"

namespace ccom {

// A value. `address` is numeric ("10.0.0.7", "fd00::7") and never a wildcard; port is never 0.
struct UniqueId {
  static constexpr size_t kBytes = 128;
  using Packed = std::array<char, kBytes>;

  std::string address;
  uint16_t port = 0;
  uint64_t communicator = 0;
  Secret secret;
  uint64_t salt = 0;  // of the job's secret (job_secret.h), where that one encrypts `secret`; 0: not chosen yet
  // False: the server already runs in the process that created the id. True: rank 0 starts it when it connects.
  bool rank0_serves = false;
  bool rank0_made = false;  // the server runs in the process of rank 0, which has made the id
  bool is_rank0s() const { return rank0_serves || rank0_made; }

  // "10.0.0.7:4100", "[fd00::7]:4100".
  std::string endpoint() const;
};

// With its secret encrypted, or decrypted, for a purpose. The number of a communicator is random: each mask is used
// once.
UniqueId masked(UniqueId id, const Secret& key, std::string_view purpose);

// InvalidArgument if the address is not numeric or cannot be bound, or if the port is 0.
Result<UniqueId::Packed> pack(const UniqueId& id);
// InvalidArgument with the reason: all zero, not an id, another version, corrupt.
Result<UniqueId> unpack(std::span<const char, UniqueId::kBytes> bytes);

// True for 127.0.0.0/8 and ::1.
bool is_loopback_address(const std::string& address);
// True for 0.0.0.0, :: and their mapped forms, at which ccom never listens.
bool is_wildcard_address(const std::string& address);

}  // namespace ccom
