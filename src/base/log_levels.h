// SPDX-License-Identifier: Apache-2.0
//
// What CCOM_LOG says: "warn,bootstrap=debug,tcp=info". Pure.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "base/status.h"

namespace ccom {

enum class LogLevel : int { Error = 0, Warn = 1, Info = 2, Debug = 3 };

// The rooms of the library, by name: the folders of its source files.
std::span<const std::string_view> log_rooms();

// The name of the folder that has the file: "src/liveness/board.cc" is of the room liveness.
constexpr std::string_view room_of_file(std::string_view file) {
  const std::string_view folder = file.substr(0, std::min(file.rfind('/'), file.size()));
  return folder.size() == file.size() ? std::string_view() : folder.substr(folder.rfind('/') + 1);
}

// ConfigError that names the word which is wrong, and what there is.
Status check_log_levels(std::string_view levels);

// Of the room, or of all others. Allocates nothing. A word that there is not: "warn".
LogLevel log_level_of(std::string_view levels, std::string_view room) noexcept;

std::string_view name_of(LogLevel level);  // as in CCOM_LOG

}  // namespace ccom
