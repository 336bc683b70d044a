// SPDX-License-Identifier: Apache-2.0
#include "bench/explain.h"

#include <nlohmann/json.hpp>

namespace ccom::bench {
namespace {

using nlohmann::json;

std::string algorithm_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("algorithm")) return algorithm_in(value["algorithm"]);
  return "";
}

}  // namespace

launch::Outcome explain(ccomComm_t comm, const Case& what, Explanation* explanation) {
  const std::string name(name_of(what.collective));
  std::string buffer(1 << 16, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    size_t length = buffer.size();
    const ccomResult_t result =
        ccomExplain(comm, name.c_str(), what.count, what.type, what.root, buffer.data(), &length);
    if (length > buffer.size()) {
      buffer.resize(length);
      continue;
    }
    if (result == ccomNotSupported) {
      *explanation = {.supported = false, .text = ccomGetLastError(nullptr)};
      return {};
    }
    if (result != ccomSuccess) return launch::outcome_of(result, comm, "explain");
    *explanation = {.supported = true, .text = buffer.c_str()};
    return {};
  }
  return launch::failure(launch::ExitCode::Communication, "ccomExplain keeps asking for more room");
}

std::vector<std::string> legal_algorithms(const std::string& text) {
  std::vector<std::string> names;
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("candidates")) return names;
  for (const json& candidate : parsed["candidates"]) {
    const std::string name = algorithm_in(candidate);
    const bool legal = candidate.is_object() && candidate.contains("legal") && candidate["legal"].is_boolean() &&
                       candidate["legal"].get<bool>();
    if (legal && !name.empty()) names.push_back(name);
  }
  return names;
}

std::string chosen_algorithm(const std::string& text) {
  const std::string name = algorithm_in(json::parse(text, nullptr, false));
  return name.empty() ? "-" : name;
}

}  // namespace ccom::bench
