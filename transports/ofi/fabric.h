// SPDX-License-Identifier: Apache-2.0
//
// libfabric as an Endpoint: one reliable datagram endpoint (FI_EP_RDM) with one completion queue; the same code for
// every provider.
//
// Uses FI_MSG sends and receives of one buffer each, and fi_writedata with 4 bytes of data. Does not use ordering,
// tags, reads, atomics, fi_cancel, FENCE or FI_DELIVERY_COMPLETE, because EFA lacks or emulates them. Memory modes are
// followed as the provider states them.
//
// `tcp;ofi_rxm` keeps open, for the endpoint's lifetime, one listening TCP socket on the bind address at an ephemeral
// port, and a connection per peer. Anyone can connect and send; the transport drops unauthenticated messages, and the
// kernel keeps those who say nothing. Its progress is manual: no threads.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <memory>

#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

// Owner of a libfabric object. A failure to close cannot be handled, so it is logged.
struct FidClose {
  void operator()(fid* object) const;
  template <typename T>
  void operator()(T* object) const {
    (*this)(&object->fid);
  }
};
template <typename T>
using Fid = std::unique_ptr<T, FidClose>;

struct InfoFree {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFree>;

// The requirements in a provider's mr_mode.
struct MemoryRules {
  bool register_buffers = false;       // FI_MR_LOCAL
  bool choose_keys = true;             // without FI_MR_PROV_KEY
  bool bind_to_endpoint = false;       // FI_MR_ENDPOINT
  bool back_with_pages = false;        // FI_MR_ALLOCATED
  bool has_virtual_addresses = false;  // FI_MR_VIRT_ADDR: peers address by pointers, not by offsets
};
// NotSupported for modes that were not offered: FI_MR_RAW and unknown bits.
Result<MemoryRules> memory_rules(int mr_mode);

enum class Purpose : uint8_t {
  Messages,
  Writes,        // NotSupported if the provider lacks the required kind
  PolledWrites,  // without a descriptor to sleep on: fewer system calls, but each poll checks every connection
};

// Opens the endpoint of `provider` at `bind_address` (see OfiConfig).
Result<std::unique_ptr<Endpoint>> open_fabric(const std::string& provider, const std::string& bind_address,
                                              Purpose purpose = Purpose::Messages);

Result<std::unique_ptr<Endpoint>> make_fabric_endpoint(Info info, MemoryRules rules, Purpose purpose);

}  // namespace ccom::ofi
