// SPDX-License-Identifier: Apache-2.0
//
// JSON as the start of a communicator reads it. nlohmann::json parses, but its trees are not used there: their
// destructors allocate, and end the process where memory has run out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_text.h"
#include "base/status.h"

namespace ccom {

struct JsonMember;

// What was parsed. Its destructor allocates nothing.
struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;  // in the order of the text, each key once
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List, Object> value;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// Checks syntax, and that no key is repeated and nothing nested absurdly deep.
Result<JsonValue> parse_json(std::string_view text);

std::string json_text(const JsonValue& value);

}  // namespace ccom
