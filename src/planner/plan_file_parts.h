// SPDX-License-Identifier: Apache-2.0
//
// Room-private: parts of plan files.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "plan/program.h"
#include "topology/json_reader.h"

namespace ccom {

// Words by the values of their types.
inline constexpr std::array<std::string_view, 11> kPatternWords = {
    "direct",        "ring", "circulant",   "torus", "swing", "rings", "one_shot", "recursive_doubling",
    "swing_latency", "bine", "bine_latency"};
inline constexpr std::array<std::string_view, 10> kKindWords = {"staged", "tree",   "trees",  "radix",    "pairwise",
                                                                "bruck",  "routed", "blocks", "explicit", "bine"};
inline constexpr std::array<std::string_view, 3> kWhereWords = {"host", "across", "all"};
inline constexpr std::array<std::string_view, 6> kSchemeWords = {"one_shot", "gather_release", "two_shot",
                                                                 "pull",     "domains",        "direct"};

constexpr int64_t kMostPlanRanks = 1 << 20;
constexpr size_t kMostPlanItems = size_t{1} << 24;  // of any list in a plan file

// The value that a word stands for; a problem that lists the words if it is none of them.
template <typename Enum, size_t n>
Enum word_at(const JsonAt& at, const std::array<std::string_view, n>& words) {
  const std::string text = at.text(1, 64);
  std::string known;
  for (size_t i = 0; i < n; ++i) {
    if (text == words[i]) return static_cast<Enum>(i);
    known += (i == 0 ? "" : ", ") + std::string(words[i]);
  }
  at.problem.add(at.path, "expected one of " + known);
  return Enum{};
}

template <typename Fn>
void for_elements(const JsonAt& at, size_t least, size_t most, Fn fn) {
  const size_t size = at.array_size(least, most);
  for (size_t i = 0; i < size; ++i) fn(at.element(i));
}

// Integers from `low` to `high`.
template <typename T>
std::vector<T> integers_at(const JsonAt& at, int64_t low, int64_t high) {
  std::vector<T> values;
  for_elements(at, 0, kMostPlanItems,
               [&](const JsonAt& value) { values.push_back(static_cast<T>(value.integer(low, high))); });
  return values;
}

// The group that an algorithm is for: what its shape must fit.
struct AlgorithmUse {
  Stage::Where where = Stage::Where::All;
  Collective collective = Collective::AllReduce;
  int members = 1;
  int root = -1;  // index among the members
};

// plan_file_shapes.cc. What is not said has its default; what does not fit the use is a problem.
MessageAlgorithm read_algorithm(const JsonAt& at, const AlgorithmUse& use);
nlohmann::ordered_json json_of(const MessageAlgorithm& algorithm);

// plan_file_trees.cc. As algorithms.
Tree read_tree(const JsonAt& at, const AlgorithmUse& use);
nlohmann::ordered_json json_of(const Tree& tree);

// plan_file_steps.cc. The plan of a member.
Plan read_plan(const JsonAt& at, const AlgorithmUse& use, int member, const std::string& name);
nlohmann::ordered_json json_of(const Plan& plan);

// plan_file_node.cc. `sizes`: of the hosts' groups.
NodeChoice read_node_choice(const JsonAt& at, Collective collective, const std::vector<size_t>& sizes);
nlohmann::ordered_json json_of(const NodeChoice& choice);

}  // namespace ccom
