// SPDX-License-Identifier: Apache-2.0
//
// Folders that belong to a running process, and are removed by the next one if that process was killed. The owner holds
// a lock on the folder, which the kernel releases with the process.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace ccom {

// The lock of a folder of this user that others cannot enter; not open if somebody holds it, or if there is no such
// folder any more.
Descriptor lock_folder(const std::string& path);

// Removes the folders in `place` whose names are `prefix` and `more` letters or digits and whose owners are gone, with
// those of their files whose names begin with `file`: a folder with anything else in it stays. No program that does not
// lock its folders may use that prefix.
void remove_abandoned_folders(const std::string& place, std::string_view prefix, size_t more, std::string_view file);

}  // namespace ccom
