// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/explain.h"

namespace ccom::bench {
namespace {

using nlohmann::json;

template <typename... Args>
std::string format(const char* text, Args... args) {
  std::array<char, 512> line{};
  std::snprintf(line.data(), line.size(), text, args...);
  return line.data();
}

std::string head_of(const json& object) {
  if (!object.contains("bound")) return "";
  const json& bound = object["bound"];
  if (bound.value("time_us", 0.0) == 0) return format("  %d ranks\n", object.value("ranks", 0));
  std::string text = format("  %d ranks; no algorithm can take less than %.3f us: ", object.value("ranks", 0),
                            bound.value("time_us", 0.0));
  const std::string cut = bound.value("narrowest", "");
  if (!cut.empty()) text += format("%.3f us for bytes over the %s, ", bound.value("bandwidth_us", 0.0), cut.c_str());
  return text + format("%.3f us for the longest path\n", bound.value("latency_us", 0.0));
}

// The reason for the choice or rejection, else the note; after two spaces.
std::string remark(const json& candidate) {
  const std::string note = candidate.value("note", "");
  const std::string why = candidate.value("why", "");
  if (why.empty() || why == note) return note.empty() ? "" : "  " + note;
  return "  " + (note.empty() || why.find(note) != std::string::npos ? why : why + " (" + note + ")");
}

std::string row_of(const json& candidate, bool chosen) {
  const std::string name = candidate.value("algorithm", "");
  const std::string start = format("  %c %-26s", chosen ? '*' : ' ', name.c_str());
  if (!candidate.value("legal", false)) {
    return start + format(" %7s %14s %14s %8s", "-", "-", "-", "-") + remark(candidate) + "\n";
  }
  const std::string multiple =
      candidate.contains("times_bound") ? format("%.2f", candidate.value("times_bound", 0.0)) : "-";
  return start +
         format(" %7.0f %14.0f %14.3f %8s", candidate.value("steps", 0.0), candidate.value("bytes_sent", 0.0),
                candidate.value("time_us", 0.0), multiple.c_str()) +
         remark(candidate) + "\n";
}

// "host reduce_scatter (two_shot), sums; across allreduce (ring), ...", of a program of several stages or tiles.
std::string stages_of(const json& object) {
  const auto tile_bytes = object.value("tile_bytes", size_t{0});
  if (!object.contains("stages") || (object["stages"].size() < 2 && tile_bytes == 0)) return "";
  std::string text;
  for (const json& stage : object["stages"]) text += (text.empty() ? "    stages: " : "; ") + stage.get<std::string>();
  return text + (tile_bytes == 0 ? "\n" : format("; tiles of %zu bytes\n", tile_bytes));
}

// What a v-form begins with.
std::string agreement_of(const json& object) {
  if (!object.contains("agreement")) return "";
  const json& agreement = object["agreement"];
  return format("    before: counts are compared by an allgather of %zu bytes (%s), %.3f us\n",
                agreement.value("bytes", size_t{0}), agreement.value("algorithm", "").c_str(),
                agreement.value("time_us", 0.0));
}

std::string links_of(const json& object) {
  std::string text;
  if (object.contains("links_note")) text = "    wires: " + object.value("links_note", "") + "\n";
  if (!object.contains("links")) return text;
  text += format("    %-10s %9s %9s %18s %18s\n", "wires", "there", "used", "bytes", "most on one");
  for (const json& kind : object["links"]) {
    text += format("    %-10s %9u %9u %18.0f %18.0f\n", kind.value("kind", "").c_str(), kind.value("there", 0U),
                   kind.value("used", 0U), kind.value("bytes", 0.0), kind.value("most", 0.0));
  }
  text +=
      format("    %zu messages in %zu rounds", object.value("messages", size_t{0}), object.value("rounds", size_t{0}));
  if (!object.contains("busiest")) return text + "\n";
  const json& busiest = object["busiest"];
  return text + format("; busiest: %s, %.0f bytes in %.3f us\n", busiest.value("name", "").c_str(),
                       busiest.value("bytes", 0.0), busiest.value("time_us", 0.0));
}

// How far calls of one kind have come in finding the fastest way: "sum, ordinary buffers: ...", then a line for each
// way.
std::string found_of(const json& found, const json& ways) {
  const size_t in_use = found.value("in_use", size_t{0});
  const std::string op = found.value("op", "");
  std::string text = "      " + (op.empty() ? "" : op + ", ") + found.value("buffers", "") + " buffers, " +
                     format("%zu calls: in use is way %zu", found.value("calls", size_t{0}), in_use);
  text += format(" since call %zu, %s; trying has cost as much as %.1f calls\n", found.value("chosen_at", size_t{0}),
                 found.value("settled", false) ? "settled" : "not settled yet", found.value("lost_calls", 0.0));
  for (size_t way = 0; way < ways.size(); ++way) {
    const json& median = found["median_us"][way];
    const std::string time = median.is_number() ? format("%14.3f us", median.get<double>()) : "     not tried   ";
    text += format("      %c %2zu %s  ", way == in_use ? '*' : ' ', way, time.c_str()) + ways[way].get<std::string>() +
            "\n";
  }
  return text;
}

// The ways of stages inside hosts, where there are several.
std::string ways_of(const json& object) {
  std::string text;
  if (!object.contains("host_stages")) return text;
  for (const json& stage : object["host_stages"]) {
    const json& ways = stage["ways"];
    const size_t first = stage.value("begins_with", size_t{0});
    if (ways.size() < 2) continue;
    text += format("    ways of stage %zu, %s of %zu bytes:\n", stage.value("stage", size_t{0}),
                   stage.value("collective", "").c_str(), stage.value("unit_bytes", size_t{0}));
    for (const json& found : stage["found"]) text += found_of(found, ways);
    for (size_t way = 0; way < ways.size() && stage["found"].empty(); ++way)
      text += format("      %c %2zu ", way == first ? '*' : ' ', way) + ways[way].get<std::string>() + "\n";
  }
  if (text.empty() || !object.contains("lines")) return text;
  const json& lines = object["lines"];
  return text + format("    lines between cores: %.4g ns a byte, claimed %.4g, streamed %.4g\n",
                       lines.value("plain_ns", 0.0), lines.value("claimed_ns", 0.0), lines.value("streamed_ns", 0.0));
}

}  // namespace

std::string explanation_table(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || !object.contains("candidates")) return text + "\n";
  const std::string chosen = object.value("algorithm", "");
  std::string table = head_of(object);
  table += format("    %-26s %7s %14s %14s %8s  %s\n", "algorithm", "steps", "bytes sent", "time us", "x bound", "why");
  for (const json& candidate : object["candidates"]) {
    table += row_of(candidate, candidate.value("algorithm", "") == chosen);
  }
  if (!object.contains("bound")) table += "  * " + object.value("reason", "") + "\n";
  return table + agreement_of(object) + stages_of(object) + ways_of(object) + links_of(object);
}

}  // namespace ccom::bench
