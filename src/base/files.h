// SPDX-License-Identifier: Apache-2.0
//
// Writing files, and what is in a folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace ccom {

// All of the contents, however many calls that takes. path: for the error.
Status write_all(const Descriptor& file, const std::string& path, std::string_view contents);

// Calls `use` with the name of everything in the folder, "." and ".." too; there may be none. Where there is no memory
// it throws bad_alloc, while iterators of std::filesystem end the process.
void for_each_entry(const std::string& path, const std::function<void(const char*)>& use);

}  // namespace ccom
