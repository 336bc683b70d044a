// SPDX-License-Identifier: Apache-2.0
//
// Choices that need every rank's capabilities.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "setup/carrier.h"
#include "setup/comm_setup.h"
#include "transports/ofi/factory.h"

namespace ccom {

// libfabric is loaded and asked only if the kernel shows such a device.
bool CommSetup::can_use_efa() const {
  const CarrierWish wish{config_.transports, config_.ofi_provider, config_.tls};
  if (!depends_on_efa(wish, topology_.hosts.size() > 1)) return false;
  return ofi::has_efa_device(config_.sysfs_root) && !ofi::list_domains("efa").empty();
}

void CommSetup::settle_carrier(const std::vector<std::string>& offers) {
  bool all_have_efa = true;
  for (const std::string& text : offers) {
    const nlohmann::json offer = nlohmann::json::parse(text, nullptr, false);
    all_have_efa &= offer.is_object() && offer.value("efa", false);
  }
  const CarrierChoice choice = choose_carrier({config_.transports, config_.ofi_provider, config_.tls}, all_have_efa);
  if (config_.transports.empty()) std::ranges::replace(routes_.names, "tcp", choice.transport);
  config_.ofi_provider = choice.ofi_provider;
  const bool uses_efa = choice.ofi_provider == "efa" && routes_.uses("ofi");
  if (!uses_efa || !config_.ofi_rails.empty()) return;
  config_.ofi_rails = choose_domains(ofi::list_domains("efa"), place(), static_cast<int>(local_ranks_.size()), 4);
}

}  // namespace ccom
