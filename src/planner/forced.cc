// SPDX-License-Identifier: Apache-2.0
#include "planner/forced.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "planner/search.h"

namespace ccom {
namespace {

constexpr const char* kAskedFor = "asked for";

// "allreduce:ring" or "ring".
struct ForcedItem {
  std::string_view text, collective, algorithm;
  bool is_bare() const { return collective.empty(); }
};

std::vector<ForcedItem> forced_items(std::string_view forced) {
  std::vector<ForcedItem> items;
  while (!forced.empty()) {
    const size_t comma = forced.find(',');
    const std::string_view text = forced.substr(0, comma);
    forced.remove_prefix(comma == std::string_view::npos ? forced.size() : comma + 1);
    const size_t colon = text.find(':');
    const bool is_bare = colon == std::string_view::npos;
    if (!text.empty())
      items.push_back({text, text.substr(0, is_bare ? 0 : colon), text.substr(is_bare ? 0 : colon + 1)});
  }
  return items;
}

// The part of CCOM_ALGO that concerns a collective. A bare name applies where it exists; `bare` says so.
std::string forced_name(std::string_view forced, Collective collective, bool& bare) {
  std::string_view fallback;
  bare = false;
  for (const ForcedItem& item : forced_items(forced)) {
    if (item.is_bare()) fallback = item.algorithm;
    if (!item.is_bare() && item.collective == name_of(collective)) return std::string(item.algorithm);
  }
  bare = true;
  return std::string(fallback);
}

std::string names_of(const std::vector<Candidate>& candidates) {
  std::string names;
  for (const Candidate& candidate : candidates) names += (names.empty() ? "" : ", ") + candidate.program.algorithm;
  return names;
}

// Every algorithm name of any collective, but for those composed from levels: a bare forced name must at least be one
// of these.
constexpr std::string_view kAllNames[] = {"node",        "one_shot",      "two_shot", "recursive_doubling",
                                          "circulant",   "ring",          "torus",    "torus_two_way",
                                          "swing",       "swing_latency", "rings",    "mixed_radix",
                                          "double_tree", "tree",          "direct",   "star",
                                          "binomial",    "knomial4",      "knomial8", "pairwise",
                                          "bruck",       "routed",        "in_order", "gather_tree",
                                          "bine",        "bine_latency",  "racks",    "racks_one_shot",
                                          "columns",     "by_dimension"};

bool is_composed(std::string_view name) { return name.starts_with("hierarchical") || name.starts_with("cores_"); }

// "; did you mean ring? there are node, ring"
std::string listed_choices(std::string_view word, const std::vector<std::string_view>& words) {
  const std::string_view meant = closest(word, words);
  std::string text = meant.empty() ? "; there are " : "; did you mean " + std::string(meant) + "? There are ";
  for (size_t i = 0; i < words.size(); ++i) text.append(i == 0 ? "" : ", ").append(words[i]);
  return text;
}

Status check_names(const ForcedItem& item) {
  std::vector<std::string_view> collectives;
  for (const CollectiveTraits& traits : kCollectiveTraits)
    if (traits.collective != Collective::SendReceive) collectives.push_back(traits.name);
  const std::string text(item.text);
  if (!item.is_bare() && std::ranges::find(collectives, item.collective) == collectives.end()) {
    return error(ErrorKey::UnknownAlgorithm, "algorithm %s: there is no collective '%s'%s", text.c_str(),
                 std::string(item.collective).c_str(), listed_choices(item.collective, collectives).c_str());
  }
  std::vector<std::string_view> algorithms(std::begin(kAllNames), std::end(kAllNames));
  algorithms.push_back("hierarchical");
  if (is_composed(item.algorithm) || std::ranges::find(algorithms, item.algorithm) != algorithms.end()) return {};
  return error(ErrorKey::UnknownAlgorithm, "algorithm %s: there is no algorithm '%s'%s", text.c_str(),
               std::string(item.algorithm).c_str(), listed_choices(item.algorithm, algorithms).c_str());
}

// Of calls of several sizes: some algorithms are for short ones only. Not of the user's plans.
Status check_use(const Topology& topology, const Settings& settings, const ForcedItem& item) {
  std::optional<Status> refusal;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective == Collective::SendReceive || (!item.is_bare() && item.collective != traits.name)) continue;
    for (const size_t bytes : {size_t{8}, size_t{64} << 10, size_t{16} << 20}) {
      Settings alone = settings;
      alone.forced = item.text;
      alone.preferred.clear();
      const Rank root = is_rooted(traits.collective) ? 0 : -1;
      const Result<Choice> choice = search(topology, alone, {traits.collective, bytes, false, root});
      if (choice && choice->reason == kAskedFor) return {};
      if (!choice && !refusal) refusal = choice.error();
    }
  }
  if (refusal) return *std::move(refusal);
  return error(ErrorKey::NoAlgorithmHere, "algorithm %s: no call of these %zu ranks can use it on this topology",
               std::string(item.text).c_str(), topology.ranks.size());
}

}  // namespace

Status check_forced(std::string_view forced) {
  for (const ForcedItem& item : forced_items(forced)) {
    Status status = check_names(item);
    if (!status.is_ok())
      return std::move(status).with_cure("correct or unset CCOM_ALGO; ccom-bench --explain shows what can run");
  }
  return {};
}

std::string useless_part(const Topology& topology, const Settings& settings, std::string_view forced) {
  if (topology.ranks.size() == 1) return "";  // it sends nothing
  for (const ForcedItem& item : forced_items(forced))
    if (const Status status = check_use(topology, settings, item); !status.is_ok()) return status.message();
  return "";
}

void prefer(Choice& choice, std::string_view name) {
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    if (!choice.candidates[i].legal || choice.candidates[i].program.algorithm != name) continue;
    choice.chosen = i;
    choice.reason = kAskedFor;
  }
}

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
      const bool rounds = question.rounds_once && candidate.roundings > 1;
      return error(rounds ? ErrorKey::StochasticRounding : ErrorKey::NoAlgorithmHere, "algorithm %s for %s: %s",
                   name.c_str(), std::string(name_of(question.collective)).c_str(), candidate.note.c_str());
    }
    choice.chosen = i;
    choice.reason = kAskedFor;
    return {};
  }
  if ((bare || question.is_v) && (is_composed(name) || std::ranges::find(kAllNames, name) != std::end(kAllNames)))
    return {};
  return error(ErrorKey::UnknownAlgorithm, "%s has no algorithm '%s'; there are %s",
               std::string(name_of(question.collective)).c_str(), name.c_str(), names_of(choice.candidates).c_str());
}

}  // namespace ccom
