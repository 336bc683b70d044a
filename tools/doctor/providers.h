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

// Asks libfabric, which asks every provider, in another process: this program with kListProviders as its argument. It
// is ended if it takes longer than `limit`, and may crash, as code of many hands does at times.
Providers list_providers(std::chrono::milliseconds limit);

// What that process does: the version and the names, a line each, go to stdout. Returns its exit code.
int print_providers();
constexpr const char* kListProviders = "--list-providers";

}  // namespace ccom::doctor
