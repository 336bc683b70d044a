// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <nlohmann/json.hpp>

namespace ccom {
namespace {

using nlohmann::json;

// Of a scalar, whose destructor allocates nothing.
std::string scalar_text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string json_text(std::string_view text) { return scalar_text(json(text)); }
std::string json_text(double value) { return scalar_text(json(value)); }

}  // namespace ccom
