// SPDX-License-Identifier: Apache-2.0
//
// Files with secrets: read only if no other user could have written or read them, written so that none can.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ccom {

// The contents, or nothing if there is no such file. ConfigError unless it is a regular file of this user without
// rights for others, not a symbolic link, of at most `most_bytes`.
Result<std::optional<std::string>> read_private_file(const std::string& path, size_t most_bytes);

// Creates a file with mode 0600 atomically: readers see none, or all of it. SystemError (EEXIST) if there is one.
Status write_private_file(const std::string& path, std::string_view contents);

// Removes the file and gives what was in it ("" if that cannot be read); nothing if there is none. Of processes that do
// this at once, one gets it. What a process left that was killed here is removed, too. ConfigError if the path is
// occupied by anything but a regular file of this user.
Result<std::optional<std::string>> take_private_file(const std::string& path, size_t most_bytes);

// Removes a file written by write_private_file(); Ok if there is none. Same ConfigError.
Status remove_private_file(const std::string& path);

// Creates a directory with mode 0700, or accepts an existing one of this user without rights for others.
Status make_private_folder(const std::string& path);

}  // namespace ccom
