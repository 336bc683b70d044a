// SPDX-License-Identifier: Apache-2.0
//
// Choices that need every rank's capabilities.
#include <algorithm>

#include "setup/carrier.h"
#include "setup/comm_setup.h"
#include "setup/exchanges.pb.h"
#include "transports/ofi/factory.h"

namespace ccom {

// libfabric is loaded and asked only if the kernel shows such a device.
bool CommSetup::can_use_efa() const {
  const CarrierWish wish{config_.transports, config_.ofi_provider, config_.tls};
  if (!depends_on_efa(wish, topology_.hosts.size() > 1)) return false;
  return ofi::has_efa_device(config_.sysfs_root) && !ofi::list_domains("efa").empty();
}

void CommSetup::choose_capabilities(const std::vector<wire::Capabilities>& all) {
  const bool all_have_efa = std::ranges::all_of(all, &wire::Capabilities::efa);
  const CarrierChoice choice = choose_carrier({config_.transports, config_.ofi_provider, config_.tls}, all_have_efa);
  if (config_.transports.empty()) std::ranges::replace(routes_.names, "tcp", choice.transport);
  config_.ofi_provider = choice.ofi_provider;
  const bool uses_efa = choice.ofi_provider == "efa" && routes_.uses("ofi");
  if (!uses_efa || !config_.ofi_rails.empty()) return;
  config_.ofi_rails = choose_domains(ofi::list_domains("efa"), segment_->local_rank(), needs_.ranks, ofi::kMaxRails);
}

}  // namespace ccom
