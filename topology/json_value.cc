// SPDX-License-Identifier: Apache-2.0
#include "topology/json_value.h"

#include <nlohmann/json.hpp>
#include <set>

namespace ccom {
namespace {

using nlohmann::json;

// A topology is six levels deep.
constexpr size_t kMaxDepth = 16;

// Takes the parser's events.
class Builder {
 public:
  bool null() { return add({}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(int64_t value) { return add({value}); }
  bool number_unsigned(uint64_t value) { return add({value}); }
  bool number_float(double value, const std::string&) { return add({value}); }
  bool string(std::string& value) { return add({std::move(value)}); }
  bool binary(json::binary_t&) { return false; }  // JSON has none
  bool start_object(size_t) { return open({JsonValue::Object()}); }
  bool start_array(size_t) { return open({JsonValue::List()}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    if (!open_.back().keys.insert(key).second) return fail("key " + json_text(key) + " is there twice");
    key_ = std::move(key);
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception& failure) { return fail(failure.what()); }

  JsonValue& root() { return root_; }
  const std::string& complaint() const { return complaint_; }

 private:
  struct Open {
    JsonValue value;
    std::string key;             // in the object around it
    std::set<std::string> keys;  // of an object
  };
  bool fail(std::string complaint) {
    complaint_ = std::move(complaint);
    return false;
  }
  bool open(JsonValue value) {
    if (open_.size() == kMaxDepth) return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    open_.push_back({std::move(value), std::move(key_), {}});
    return true;
  }
  bool close() {
    Open last = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(last.key);
    return add(std::move(last.value));
  }
  bool add(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* list = std::get_if<JsonValue::List>(&open_.back().value.value)) {
      list->push_back(std::move(value));
    } else {
      std::get<JsonValue::Object>(open_.back().value.value).push_back({std::move(key_), std::move(value)});
    }
    return true;
  }

  JsonValue root_;
  std::vector<Open> open_;
  std::string key_;
  std::string complaint_;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text) {
  Builder builder;
  if (json::sax_parse(text, &builder)) return std::move(builder.root());
  return error(ErrorKey::TopologyFile, "JSON: %s", builder.complaint().c_str());
}

std::string json_text(const JsonValue& value) {
  if (const auto* list = value.as<JsonValue::List>()) return json_text(*list);
  if (const auto* object = value.as<JsonValue::Object>()) {
    std::string text;
    for (const JsonMember& member : *object)
      text += (text.empty() ? "" : ",") + json_text(member.key) + ":" + json_text(member.value);
    return "{" + text + "}";
  }
  if (const auto* text = value.as<std::string>()) return json_text(*text);
  if (const auto* number = value.as<double>()) return json_text(*number);
  if (const auto* integer = value.as<int64_t>()) return std::to_string(*integer);
  if (const auto* integer = value.as<uint64_t>()) return std::to_string(*integer);
  if (const auto* boolean = value.as<bool>()) return json_text(*boolean);
  return "null";
}

}  // namespace ccom
