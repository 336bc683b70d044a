// SPDX-License-Identifier: Apache-2.0
#include "topology/json_reader.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace ccom {
namespace {

using nlohmann::json;

// A topology is six levels deep.
constexpr int kMaxDepth = 16;

const json kNull;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string found(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return ", found " + text;
}

// Watches the parser's events for what the finished value no longer shows.
class Watch {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (!complaint_.empty()) return false;
    if (depth > kMaxDepth) complaint_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      complaint_ = "key " + parsed.dump(-1, ' ', true, json::error_handler_t::replace) + " is there twice";
    }
    return complaint_.empty();  // false drops the value, which is dropped as a whole anyway
  }
  const std::string& complaint() const { return complaint_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string complaint_;
};

}  // namespace

int64_t JsonAt::integer(int64_t low, int64_t high) const {
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                        : value.is_number_integer();
  if (fits && value.get<int64_t>() >= low && value.get<int64_t>() <= high) return value.get<int64_t>();
  problem.add(path, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) + found(value));
  return low;
}

double JsonAt::number(double low, double high) const {
  if (value.is_number() && value.get<double>() >= low && value.get<double>() <= high) return value.get<double>();
  problem.add(path, "expected a number from " + number_text(low) + " to " + number_text(high) + found(value));
  return low;
}

bool JsonAt::boolean() const {
  if (!value.is_boolean()) problem.add(path, "expected true or false" + found(value));
  return value.is_boolean() && value.get<bool>();
}

std::string JsonAt::text(size_t least_bytes, size_t most_bytes) const {
  if (!value.is_string()) {
    problem.add(path, "expected a text" + found(value));
    return {};
  }
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() < least_bytes || text.size() > most_bytes) {
    problem.add(path, "expected a text of " + std::to_string(least_bytes) + " to " + std::to_string(most_bytes) +
                          " bytes" + found(value));
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) problem.add(path, "control character" + found(value));
  }
  return text;
}

size_t JsonAt::array_size(size_t least, size_t most) const {
  if (value.is_array() && value.size() >= least && value.size() <= most) return value.size();
  const std::string bounds =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  problem.add(path, "expected a list of " + bounds + " elements" + found(value));
  return 0;
}

JsonAt JsonAt::element(size_t index) const {
  return {value.at(index), path + "[" + std::to_string(index) + "]", problem};
}

JsonObject::JsonObject(const JsonAt& at) : at_(at) {
  if (!at.value.is_object()) at.problem.add(at.path, "expected an object" + found(at.value));
}

bool JsonObject::has(const char* key) const { return at_.value.is_object() && at_.value.contains(key); }

JsonAt JsonObject::at(const char* key) {
  asked_.insert(key);
  const std::string path = at_.path + "." + key;
  if (has(key)) return {at_.value.at(key), path, at_.problem};
  at_.problem.add(path, "missing");
  return {kNull, path, at_.problem};
}

void JsonObject::finish() const {
  if (!at_.value.is_object()) return;
  for (const auto& [key, value] : at_.value.items()) {
    if (!asked_.contains(key)) at_.problem.add(at_.path + "." + key, "unknown key");
  }
}

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  Watch watch;
  try {
    json value = json::parse(
        text, [&watch](int depth, json::parse_event_t event, json& parsed) { return watch(depth, event, parsed); });
    if (watch.complaint().empty()) return JsonDocument(std::make_shared<const json>(std::move(value)));
    return error(ErrorKey::TopologyFile, "JSON: %s", watch.complaint().c_str());
  } catch (const json::exception& failure) {
    return error(ErrorKey::TopologyFile, "JSON: %s", failure.what());
  }
}

LinkSpeed speed_at(const JsonAt& latency, const JsonAt& bandwidth) {
  return {.latency_ns = latency.number(0, kMaxLatencyNs), .bytes_per_second = bandwidth.number(1, kMaxBytesPerSecond)};
}

LinkSpeed read_speed(const JsonAt& at) {
  JsonObject object(at);
  const LinkSpeed speed = speed_at(object.at("latency_ns"), object.at("bytes_per_second"));
  object.finish();
  return speed;
}

}  // namespace ccom
