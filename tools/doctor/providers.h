// SPDX-License-Identifier: Apache-2.0
//
// Which providers libfabric offers here.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ccom::doctor {

struct Providers {
  std::string version{};  // of libfabric, "" if it is not installed
  std::vector<std::string> names{};
  std::string failure{};  // "" if `names` is all there is
};

// Asks libfabric, which asks every provider, in a thread that is left behind if it does not come back within `limit`.
Providers list_providers(std::chrono::milliseconds limit);

}  // namespace ccom::doctor
