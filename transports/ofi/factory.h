// SPDX-License-Identifier: Apache-2.0
//
// The libfabric transport: EFA between instances, and any other provider with reliable datagram endpoints (FI_EP_RDM).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "memory/arena.h"
#include "transports/transport.h"

namespace ccom::ofi {

struct OfiConfig {
  Rank rank = -1;
  uint64_t communicator = 0;  // the same at all ranks of the communicator, another for any other
  Secret key;                 // shared by its ranks
  std::string provider = "tcp;ofi_rxm";
  // The address to bind, e.g. "10.0.0.7"; for efa the name of a domain ("rdmap0s6-rdm") or empty: the first. Never a
  // wildcard. Small messages go there.
  std::string bind_address;
  int peers = 0;         // how many there will be, about; 0: unknown
  bool checksum = true;  // CRC32C over all that this rank sends
  // Where large messages go, up to 4, like bind_address; empty: there too. All ranks should have as many.
  std::vector<std::string> rails{};
  // Whose memory may stay registered between messages; outlives the transport. Null: none.
  const Arena* arena = nullptr;
};

// Does the kernel show an EFA device? `sysfs_root`: where sys is found, "/".
bool has_efa_device(const std::string& sysfs_root);
// The domains of a provider ("rdmap0s6-rdm"): what OfiConfig::rails may name. Empty if it is not usable here.
std::vector<std::string> list_domains(const std::string& provider);

// Opens the provider's endpoint. NotSupported if the provider is not there or lacks what is needed.
Result<std::unique_ptr<Transport>> make_ofi_transport(OfiConfig config);

}  // namespace ccom::ofi
