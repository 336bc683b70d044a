// SPDX-License-Identifier: Apache-2.0
//
// JSON as it is written, text by text: nlohmann::json escapes and prints numbers, but its trees are not used: their
// destructors allocate, and end the process where memory has run out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ccom {

// JSON texts of values. Bytes that are not UTF-8 become U+FFFD; nothing is thrown for them.
std::string json_text(std::string_view text);
std::string json_text(double value);
inline std::string json_text(const std::string& text) { return json_text(std::string_view(text)); }
inline std::string json_text(const char* text) { return json_text(std::string_view(text)); }
inline std::string json_text(bool value) { return value ? "true" : "false"; }
inline std::string json_text(int value) { return std::to_string(value); }
inline std::string json_text(size_t value) { return std::to_string(value); }

// A list of JSON texts.
class JsonList {
 public:
  void add(const std::string& element) { text_ += (text_.size() == 1 ? "" : ",") + element; }
  std::string text() const { return text_ + "]"; }

 private:
  std::string text_ = "[";
};

template <typename T>
std::string json_text(const std::vector<T>& values) {
  JsonList list;
  for (const T& value : values) list.add(json_text(value));
  return list.text();
}

// An object, whose members keep their order.
class JsonObjectText {
 public:
  template <typename T>
  JsonObjectText& add(const char* key, const T& value) {
    return add_text(key, json_text(value));
  }
  // Of a value that is a JSON text already.
  JsonObjectText& add_text(const char* key, const std::string& value) {
    text_ += (is_empty() ? "" : ",") + json_text(key) + ":" + value;
    return *this;
  }
  bool is_empty() const { return text_.size() == 1; }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

}  // namespace ccom
