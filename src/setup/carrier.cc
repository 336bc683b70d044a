// SPDX-License-Identifier: Apache-2.0
#include "setup/carrier.h"

#include <algorithm>
#include <span>

namespace ccom {

bool depends_on_efa(const CarrierWish& wish, bool has_several_hosts) {
  if (!wish.ofi_provider.empty() || wish.encrypted) return false;
  if (wish.transports.empty()) return has_several_hosts;
  return std::ranges::find(wish.transports, "ofi") != wish.transports.end();
}

CarrierChoice choose_carrier(const CarrierWish& wish, bool all_have_efa) {
  const bool is_efa = all_have_efa && wish.ofi_provider.empty() && !wish.encrypted;
  CarrierChoice choice{is_efa ? "ofi" : "tcp", wish.ofi_provider};
  if (choice.ofi_provider.empty()) choice.ofi_provider = is_efa ? "efa" : "tcp;ofi_rxm";
  return choice;
}

std::vector<std::string> choose_domains(std::vector<std::string> domains, int place, int ranks, size_t most) {
  std::ranges::sort(domains);
  const size_t count = domains.size(), of = static_cast<size_t>(ranks), self = static_cast<size_t>(place);
  if (count == 0) return {};
  const size_t each = std::clamp<size_t>(count / of, 1, most);
  const size_t first = count >= of ? self * (count / of) : self * count / of;
  const auto chosen = std::span(domains).subspan(first, each);
  return {chosen.begin(), chosen.end()};
}

}  // namespace ccom
