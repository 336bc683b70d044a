// SPDX-License-Identifier: Apache-2.0
//
// The file that ccom-bench --tune and CCOM_TUNING_SAVE write and CCOM_TUNING names. Every key may be left out:
//
//   {
//     "memory": {"latency_ns": 620, "bytes_per_second": 9.1e9},
//     "network": {"latency_ns": 18000, "bytes_per_second": 12.2e9},
//     "costs": {"post_ns": 350, "reduce_bytes_per_second": 21e9},
//     "memory_costs": {"line_ns": 70, "barrier_ns": 90, "shared_load_ns": 0.1},    the members of MemoryCosts
//     "network_costs": {"message_ns": 1500, "flow_byte_ns": 0.4},                 the members of NetworkCosts
//     "measured_on": "c7i.8xlarge",
//     "ways": {"processor": ..., "version": ..., "kinds": [...]}                  LearnedWays
//   }
#include "base/files.h"
#include "topology/costs_json.h"
#include "topology/json_reader.h"
#include "topology/learned_json.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr size_t kMaxTuningBytes = 8 << 20;  // of which speeds need less than a thousandth

void read_costs(const JsonAt& at, Calibration& calibration) {
  JsonObject object(at);
  if (object.has("post_ns")) calibration.post_ns = object.at("post_ns").number(0, kMaxLatencyNs);
  if (object.has("reduce_bytes_per_second")) {
    calibration.reduce_bytes_per_second = object.at("reduce_bytes_per_second").number(1, kMaxBytesPerSecond);
  }
  object.finish();
}

Calibration read(const JsonAt& at) {
  JsonObject object(at);
  Calibration calibration;
  if (object.has("memory")) calibration.memory = read_speed(object.at("memory"));
  if (object.has("network")) calibration.network = read_speed(object.at("network"));
  if (object.has("costs")) read_costs(object.at("costs"), calibration);
  if (object.has("memory_costs")) calibration.memory_costs = read_memory_costs(object.at("memory_costs"));
  if (object.has("network_costs")) calibration.network_costs = read_network_costs(object.at("network_costs"));
  if (object.has("measured_on")) calibration.measured_on = object.at("measured_on").text(0, kMaxTextBytes);
  if (object.has("ways")) calibration.ways = read_learned_ways(object.at("ways"));
  object.finish();
  return calibration;
}

}  // namespace

Result<Calibration> calibration_from_json(std::string_view text) {
  CCOM_TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(text));
  Problem problem;
  Calibration calibration = read(document.root("tuning", problem));
  if (!problem.status().is_ok()) return problem.status();
  return calibration;
}

Result<Calibration> read_calibration(const std::string& path) {
  Result<std::string> text = read_file(path, kMaxTuningBytes);
  if (!text) return error(Code::ConfigError, "tuning file: %s", text.error().message().c_str());
  Result<Calibration> calibration = calibration_from_json(*text);
  if (!calibration) return std::move(calibration).error().in("tuning file " + path);
  return calibration;
}

}  // namespace ccom
