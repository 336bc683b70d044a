// SPDX-License-Identifier: Apache-2.0
#include "topology/json_reader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

namespace ccom {
namespace {

const JsonValue kNull;

std::string number_text(double value) { return printed("%.10g", value); }

std::string found(const JsonValue& value) {
  std::string text = json_text(value);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return ", found " + text;
}

const JsonValue* member(const JsonValue& value, std::string_view key) {
  const auto* const object = value.as<JsonValue::Object>();
  if (object == nullptr) return nullptr;
  const auto at = std::ranges::find(*object, key, &JsonMember::key);
  return at != object->end() ? &at->value : nullptr;
}

}  // namespace

int64_t JsonAt::integer(int64_t low, int64_t high) const {
  std::optional<int64_t> integer;
  if (const auto* number = value.as<int64_t>()) integer = *number;
  const auto* const natural = value.as<uint64_t>();
  if (natural != nullptr && *natural <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    integer = static_cast<int64_t>(*natural);
  if (integer && *integer >= low && *integer <= high) return *integer;
  problem.add(path, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) + found(value));
  return low;
}

double JsonAt::number(double low, double high) const {
  std::optional<double> number;
  if (const auto* given = value.as<double>()) number = *given;
  if (const auto* given = value.as<int64_t>()) number = static_cast<double>(*given);
  if (const auto* given = value.as<uint64_t>()) number = static_cast<double>(*given);
  if (number && *number >= low && *number <= high) return *number;
  problem.add(path, "expected a number from " + number_text(low) + " to " + number_text(high) + found(value));
  return low;
}

bool JsonAt::boolean() const {
  const bool* const given = value.as<bool>();
  if (given == nullptr) problem.add(path, "expected true or false" + found(value));
  return given != nullptr && *given;
}

std::string JsonAt::text(size_t least_bytes, size_t most_bytes) const {
  const auto* const text = value.as<std::string>();
  if (text == nullptr) {
    problem.add(path, "expected a text" + found(value));
    return {};
  }
  if (text->size() < least_bytes || text->size() > most_bytes) {
    problem.add(path, "expected a text of " + std::to_string(least_bytes) + " to " + std::to_string(most_bytes) +
                          " bytes" + found(value));
  }
  for (const char c : *text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) problem.add(path, "control character" + found(value));
  }
  return *text;
}

size_t JsonAt::array_size(size_t least, size_t most) const {
  const auto* const list = value.as<JsonValue::List>();
  if (list != nullptr && list->size() >= least && list->size() <= most) return list->size();
  const std::string bounds =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  problem.add(path, "expected a list of " + bounds + " elements" + found(value));
  return 0;
}

JsonAt JsonAt::element(size_t index) const {
  return {std::get<JsonValue::List>(value.value).at(index), path + "[" + std::to_string(index) + "]", problem};
}

JsonObject::JsonObject(const JsonAt& at) : at_(at) {
  if (at.value.as<JsonValue::Object>() == nullptr) at.problem.add(at.path, "expected an object" + found(at.value));
}

bool JsonObject::has(const char* key) const { return member(at_.value, key) != nullptr; }

JsonAt JsonObject::at(const char* key) {
  asked_.insert(key);
  const std::string path = at_.path + "." + key;
  if (const JsonValue* const there = member(at_.value, key)) return {*there, path, at_.problem};
  at_.problem.add(path, "missing");
  return {kNull, path, at_.problem};
}

void JsonObject::finish() const {
  const auto* const object = at_.value.as<JsonValue::Object>();
  if (object == nullptr) return;
  for (const JsonMember& each : *object) {
    if (!asked_.contains(each.key)) at_.problem.add(at_.path + "." + each.key, "unknown key");
  }
}

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  CCOM_TRY_ASSIGN(JsonValue value, parse_json(text));
  return JsonDocument(std::make_shared<const JsonValue>(std::move(value)));
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
