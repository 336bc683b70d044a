// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing files, and what is in a folder.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace ccom {

// All of a regular file, or no more than its first bytes. SystemError for what is no regular file: it never waits, as
// who opens a FIFO may, and devices need not end. SystemError for a file of more than `most_bytes`; by default more
// than any plan has that somebody would run.
inline constexpr size_t kMostFileBytes = size_t{256} << 20;
Result<std::string> read_file(const std::string& path, size_t most_bytes = kMostFileBytes);
Result<std::string> read_beginning(const std::string& path, size_t most_bytes);

// A file that is not there yet, neither as a link, for this process to write and read. errno is set if it is not open.
// folder: as of openat().
Descriptor create_file(int folder, const std::string& name, mode_t mode);
// All of the contents, however many calls that takes. path: for the error.
Status write_all(const Descriptor& file, const std::string& path, std::string_view contents);

// Calls `use` with the name of everything in the folder, "." and ".." too; there may be none. Where there is no memory
// it throws bad_alloc, while iterators of std::filesystem end the process.
void for_each_entry(const std::string& path, const std::function<void(const char*)>& use);

}  // namespace ccom
