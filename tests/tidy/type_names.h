// SPDX-License-Identifier: Apache-2.0
//
// Which types a C++ source defines at namespace scope. Two files that define different types of one name break the one
// definition rule without a word from compiler or linker.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ccom::tidy {

// "ccom::shm::Channel" for every class, struct, union and enum with a body, in order. Left out: what is nested in types
// or functions or stands in an anonymous namespace, specialisations, and macros' contents. Both branches of an #if
// count.
std::vector<std::string> type_names(std::string_view source);

}  // namespace ccom::tidy
