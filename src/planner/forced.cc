// SPDX-License-Identifier: Apache-2.0
#include "planner/forced.h"

#include <algorithm>

namespace ccom {
namespace {

// The part of CCOM_ALGO that concerns a collective: "ring", "allreduce:ring,broadcast:tree". A bare name applies where
// it exists; `bare` says so.
std::string forced_name(std::string_view forced, Collective collective, bool& bare) {
  std::string fallback;
  while (!forced.empty()) {
    const size_t comma = forced.find(',');
    const std::string_view item = forced.substr(0, comma);
    forced.remove_prefix(comma == std::string_view::npos ? forced.size() : comma + 1);
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      fallback = item;
    } else if (item.substr(0, colon) == name_of(collective)) {
      bare = false;
      return std::string(item.substr(colon + 1));
    }
  }
  bare = true;
  return fallback;
}

std::string names_of(const std::vector<Candidate>& candidates) {
  std::string names;
  for (const Candidate& candidate : candidates) names += (names.empty() ? "" : ", ") + candidate.program.algorithm;
  return names;
}

// Every algorithm name of any collective, but for those composed from levels: a bare forced name must at least be one
// of these.
constexpr std::string_view kAllNames[] = {
    "node",  "one_shot",      "two_shot", "recursive_doubling", "circulant",   "ring",  "torus",
    "swing", "swing_latency", "rings",    "mixed_radix",        "double_tree", "tree",  "direct",
    "star",  "binomial",      "knomial4", "knomial8",           "pairwise",    "routed"};

}  // namespace

Status apply_forced(Choice& choice, const Question& question, std::string_view forced) {
  bool bare = true;
  const std::string name = forced_name(forced, question.collective, bare);
  if (name.empty()) return {};
  const auto is_named = [&](const Candidate& candidate) { return candidate.program.algorithm == name; };
  // "hierarchical" is the better one of those through memory, where no algorithm has just this name.
  const bool is_family = name == "hierarchical" && std::ranges::none_of(choice.candidates, is_named);
  const auto is_of_family = [](const Candidate& candidate) {
    return candidate.program.algorithm.starts_with("hierarchical_") && !candidate.program.is_messages();
  };
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const Candidate& candidate = choice.candidates[i];
    if (!is_named(candidate) && !(is_family && is_of_family(candidate))) continue;
    if (!candidate.legal) {
      return error(Code::NotSupported, "algorithm %s for %s: %s", name.c_str(),
                   std::string(name_of(question.collective)).c_str(), candidate.note.c_str());
    }
    choice.chosen = i;
    choice.reason = "asked for";
    return {};
  }
  const bool composed = name.starts_with("hierarchical") || name.starts_with("cores_");
  if (bare && (composed || std::ranges::find(kAllNames, name) != std::end(kAllNames))) return {};
  return error(Code::ConfigError, "%s has no algorithm '%s'; there are %s",
               std::string(name_of(question.collective)).c_str(), name.c_str(), names_of(choice.candidates).c_str());
}

}  // namespace ccom
