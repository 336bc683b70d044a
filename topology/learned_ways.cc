// SPDX-License-Identifier: Apache-2.0
#include "topology/learned_ways.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "topology/costs_json.h"
#include "topology/learned_json.h"

namespace ccom {
namespace {

constexpr size_t kMostKinds = 4096, kMostWays = 256;
constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostCount = int64_t{1} << 53;  // which every reader of JSON has exactly
constexpr double kMostMicroseconds = 1e12;
constexpr uint64_t kLeastPart = 4;  // smaller calls than this part are no guide

std::string json_text(const LearnedKind& kind) {
  JsonList medians;
  for (const auto& [way, us] : kind.median_us) medians.add(JsonObjectText().add("way", way).add("us", us).text());
  return JsonObjectText()
      .add("stage", kind.stage)
      .add("call", kind.call)
      .add("buffers", kind.buffers)
      .add("ranks", kind.ranks)
      .add("cores", kind.cores)
      .add("units", kind.units)
      .add("unit_bytes", kind.unit_bytes)
      .add("in_use", kind.in_use)
      .add("calls", kind.calls)
      .add_text("median_us", medians.text())
      .text();
}

LearnedKind read_kind(const JsonAt& at) {
  JsonObject object(at);
  LearnedKind kind;
  kind.stage = object.at("stage").text(1, kMaxTextBytes);
  kind.call = object.at("call").text(1, kMaxTextBytes);
  kind.buffers = object.at("buffers").text(1, kMaxTextBytes);
  kind.ranks = static_cast<int>(object.at("ranks").integer(1, kMostRanks));
  kind.cores = object.has("cores") ? static_cast<int>(object.at("cores").integer(1, kMostRanks)) : kind.ranks;
  kind.units = static_cast<uint64_t>(object.at("units").integer(0, kMostCount));
  kind.unit_bytes = static_cast<uint64_t>(object.at("unit_bytes").integer(0, kMostCount));
  kind.in_use = object.at("in_use").text(1, kMaxTextBytes);
  kind.calls = static_cast<uint64_t>(object.at("calls").integer(0, kMostCount));
  const JsonAt medians = object.at("median_us");
  const size_t count = medians.array_size(0, kMostWays);
  for (size_t i = 0; i < count; ++i) {
    JsonObject median(medians.element(i));
    std::string way = median.at("way").text(1, kMaxTextBytes);
    kind.median_us.emplace_back(std::move(way), median.at("us").number(0, kMostMicroseconds));
    median.finish();
  }
  object.finish();
  return kind;
}

}  // namespace

std::string json_text(const LearnedWays& ways) {
  JsonList kinds;
  for (const LearnedKind& kind : ways.kinds) kinds.add(json_text(kind));
  return JsonObjectText()
      .add("processor", ways.processor)
      .add("version", ways.version)
      .add("starts", ways.starts)
      .add_text("own_memory", json_text(ways.own))
      .add_text("kinds", kinds.text())
      .text();
}

LearnedWays read_learned_ways(const JsonAt& at) {
  JsonObject object(at);
  LearnedWays ways;
  ways.processor = object.at("processor").text(0, kMaxTextBytes);
  ways.version = object.at("version").text(0, kMaxTextBytes);
  if (object.has("starts")) ways.starts = static_cast<int>(object.at("starts").integer(0, kMostRanks));
  if (object.has("own_memory")) ways.own = read_own_costs(object.at("own_memory"));
  const JsonAt kinds = object.at("kinds");
  const size_t count = kinds.array_size(0, kMostKinds);
  for (size_t i = 0; i < count; ++i) ways.kinds.push_back(read_kind(kinds.element(i)));
  object.finish();
  return ways;
}

uint64_t hash_of(const LearnedWays& ways) { return hash_of_text(json_text(ways)); }

const LearnedKind* nearest(const LearnedWays& known, const LearnedKind& asked) {
  const auto rank = [&](const LearnedKind& kind) {
    return std::tuple(kind.call == asked.call, kind.unit_bytes, kind.calls);
  };
  const LearnedKind* best = nullptr;
  for (const LearnedKind& kind : known.kinds) {
    if (kind.stage != asked.stage || kind.ranks != asked.ranks || kind.cores != asked.cores ||
        kind.units != asked.units)
      continue;
    if (!asked.buffers.empty() && kind.buffers != asked.buffers) continue;
    if (kind.unit_bytes > asked.unit_bytes || kind.unit_bytes < asked.unit_bytes / kLeastPart) continue;
    if (best == nullptr || rank(kind) > rank(*best)) best = &kind;
  }
  return best;
}

}  // namespace ccom
