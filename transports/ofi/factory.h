// SPDX-License-Identifier: Apache-2.0
//
// The libfabric transport: EFA between instances, and any other provider with reliable datagram endpoints (FI_EP_RDM).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "memory/arena.h"
#include "transports/transport.h"

namespace ccom::ofi {

inline constexpr size_t kMaxRails = 16;

struct OfiConfig {
  Rank rank = -1;
  uint64_t communicator = 0;  // equal on all ranks of the communicator, unique to it
  Secret key;                 // shared by its ranks
  std::string provider = "tcp;ofi_rxm";
  // The address to bind, for example "10.0.0.7"; for efa the name of a domain ("rdmap0s6-rdm"), or empty for the first.
  // No wildcard. Small messages use it.
  std::string bind_address;
  int peers = 0;         // approximate number of peers; 0: unknown
  bool checksum = true;  // CRC32C over everything that this rank sends
  // What large messages use, up to kMaxRails, in the form of bind_address; empty: bind_address. Should be equally many
  // on all ranks.
  std::vector<std::string> rails{};
  // When a write has failed, no packet of it arrives later than that.
  std::chrono::milliseconds flight_time{1000};
  // Memory whose registrations may be cached between messages; must outlive the transport. Null: none.
  const Arena* arena = nullptr;
};

// Whether the kernel shows an EFA device. `sysfs_root`: parent directory of sys, "/".
bool has_efa_device(const std::string& sysfs_root);
// The domains of a provider ("rdmap0s6-rdm"), for OfiConfig::rails. Empty if it is not usable.
std::vector<std::string> list_domains(const std::string& provider);

// Opens the provider's endpoint. NotSupported if the provider is missing or lacks a required feature.
Result<std::unique_ptr<Transport>> make_ofi_transport(OfiConfig config);

}  // namespace ccom::ofi
