// SPDX-License-Identifier: Apache-2.0
#include "bench/explain.h"

#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/run.h"

namespace ccom::bench {
namespace {

using nlohmann::json;

std::string algorithm_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("algorithm")) return algorithm_in(value["algorithm"]);
  return "";
}

// Repeats with a larger buffer until the text fits.
template <class Call>
launch::Outcome ask(ccomComm_t comm, Explanation* explanation, Call call) {
  std::string buffer(1 << 16, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    size_t length = buffer.size();
    const ccomResult_t result = call(buffer.data(), &length);
    if (length > buffer.size()) {
      buffer.resize(length);
      continue;
    }
    if (result == ccomNotSupported) {
      *explanation = {.supported = false, .text = ccomGetLastError(nullptr)};
      return {};
    }
    if (result == ccomConfigError) return launch::failure(launch::ExitCode::Usage, "%s", ccomGetLastError(nullptr));
    if (result != ccomSuccess) return launch::outcome_of(result, comm, "explain");
    *explanation = {.supported = true, .text = buffer.c_str()};
    return {};
  }
  return launch::failure(launch::ExitCode::Communication, "the explanation does not fit into any buffer");
}

}  // namespace

launch::Outcome explain(ccomComm_t comm, const Case& what, Explanation* explanation) {
  const std::string name(name_of(what.collective));
  return ask(comm, explanation, [&](char* json, size_t* length) {
    return ccomExplain(comm, name.c_str(), what.count, what.type, what.root, json, length);
  });
}

launch::Outcome explain_offline(const Options& options) {
  const auto ask_about = [&](const Case& what, Explanation* explanation) {
    const std::string name(name_of(what.collective));
    return ask(nullptr, explanation, [&](char* json, size_t* length) {
      return ccomTopoExplain(options.topology.c_str(), name.c_str(), what.count, what.type, what.root, json, length);
    });
  };
  Report report(options, 0);
  CCOM_LAUNCH_TRY(report.open());
  Explanation smallest;  // Provides the number of ranks, from which counts follow.
  CCOM_LAUNCH_TRY(ask_about({.collective = Collective::SendRecv}, &smallest));
  const json parsed = json::parse(smallest.text, nullptr, false);
  const int ranks = parsed.is_object() ? parsed.value("ranks", 1) : 1;
  if (options.root && *options.root >= ranks)
    return launch::failure(launch::ExitCode::Usage, "-r %d: %s has %d ranks", *options.root, options.topology.c_str(),
                           ranks);
  for (Collective collective : options.collectives) {
    for (const Case& what : cases_of(collective, ranks, range_of(options, ranks))) {
      Explanation explanation;
      CCOM_LAUNCH_TRY(ask_about(what, &explanation));
      explanation.supported ? report.explanation(what, explanation.text) : report.skipped(what, explanation.text);
    }
  }
  return report.close();
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
