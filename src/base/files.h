// SPDX-License-Identifier: Apache-2.0
//
// Writing files.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace ccom {

// All of the contents, however many calls that takes. path: for the error.
Status write_all(const Descriptor& file, const std::string& path, std::string_view contents);

}  // namespace ccom
