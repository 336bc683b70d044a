// SPDX-License-Identifier: Apache-2.0
//
// Files that hold a secret: read only if nobody else could have written or read them, written so that nobody can.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ccom {

// The contents, or nothing if there is no such file. A ConfigError unless it is a regular file of this user with no
// rights for others, reached through no symbolic link, of at most `most_bytes`.
Result<std::optional<std::string>> read_private_file(const std::string& path, size_t most_bytes);

// Puts a file with mode 0600 there in one step: readers see the old contents, none, or all of the new. A ConfigError if
// something is there that is not this user's regular file.
Status write_private_file(const std::string& path, std::string_view contents);

// Removes a file that write_private_file made; Ok if there is none. The same ConfigError.
Status remove_private_file(const std::string& path);

// Makes a folder with mode 0700, or accepts one that is this user's and closed to others.
Status make_private_folder(const std::string& path);

}  // namespace ccom
