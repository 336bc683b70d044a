// SPDX-License-Identifier: Apache-2.0
#include "base/variable_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>

#include "base/log.h"
#include "base/options.h"
#include "base/text.h"

namespace ccom {
namespace {

constexpr std::string_view kPrefix = "CCOM_";

constexpr std::array kOthers = {
    // python/ccom, python/csrc
    "CCOM_TORCH_DUMP", "CCOM_TORCH_MAPPED_TENSORS", "CCOM_TORCH_MAP_BUCKETS", "CCOM_TORCH_REPLACE_GLOO",
    // doors/mpi
    "CCOM_MPI", "CCOM_MPI_STATS",
    // examples/clusters/start-ranks
    "CCOM_SECRET_SOURCE",
    // find_package(ccom), pip install ./python
    "CCOM_DIR", "CCOM_ROOT",
    // tests and scripts; CCOM_TEST_... as well
    "CCOM_BINARY_DIR", "CCOM_FUZZ", "CCOM_REGRET", "CCOM_SOURCE_DIR", "CCOM_UPDATE_GOLDEN"};

bool is_known(const std::string& name) {
  return std::ranges::any_of(option_table(), [&](const OptionInfo& info) { return name == info.key; }) ||
         std::ranges::any_of(kOthers, [&](const char* other) { return name == other; }) ||
         name.starts_with("CCOM_TEST_");
}

// Of a service "ccom" or "ccom-...", in every container of its namespace: CCOM_SERVICE_HOST, CCOM_PORT_4100_TCP_ADDR.
bool is_of_service(const std::string& name) {
  const size_t port = name.find("_PORT_");
  return name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string::npos ||
         name.ends_with("_PORT") || (port != std::string::npos && std::isdigit(name[port + 6]) != 0);
}

std::vector<std::string_view> known_words() {
  std::vector<std::string_view> words;
  for (const OptionInfo& info : option_table()) words.push_back(std::string_view(info.key).substr(kPrefix.size()));
  for (const std::string_view other : kOthers) words.push_back(other.substr(kPrefix.size()));
  return words;
}

}  // namespace

std::span<const char* const> other_variables() { return kOthers; }

std::vector<std::string> unknown_variables(const std::vector<std::string>& names) {
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || is_known(name) || is_of_service(name)) continue;
    const std::string_view meant = closest(std::string_view(name).substr(kPrefix.size()), known_words());
    sentences.push_back("no such variable " + name +
                        (meant.empty() ? "; docs/variables.md and ccomParamList have all of them"
                                       : "; did you mean " + std::string(kPrefix) + std::string(meant) + "?"));
  }
  std::ranges::sort(sentences);
  return sentences;
}

void warn_of_unknown_variables() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::vector<std::string> names;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (text.starts_with(kPrefix)) names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& sentence : unknown_variables(names)) log_always(LogLevel::Warn, sentence);
  });
}

}  // namespace ccom
