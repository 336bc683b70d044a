// SPDX-License-Identifier: Apache-2.0
//
// Lists the providers that libfabric offers on this host.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ccom::doctor {

struct Providers {
  std::string version{};  // of libfabric, "" if it is not installed
  std::vector<std::string> names{};
  std::string failure{};  // "" if `names` is complete
};

// Queries libfabric, and thereby every provider, in a separate process: this program with kListProviders as its
// argument. The process is killed after `limit`, and may crash, as third-party providers do at times.
Providers list_providers(std::chrono::milliseconds limit);

// The child process: prints the version and the names to stdout, one per line. Returns the exit code.
int print_providers();
constexpr const char* kListProviders = "--list-providers";

}  // namespace ccom::doctor
