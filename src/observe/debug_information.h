// SPDX-License-Identifier: Apache-2.0
//
// What the debug information of a program or a shared library says of a place in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ccom {

// A place as call_site.h writes it.
struct PlaceInModule {
  std::string_view text;  // "/path/module+0x1234"
  std::string path;
  uint64_t offset = 0;      // as addresses in the file count
  std::string_view symbol;  // "": unknown
};
// Empty for any other text.
std::optional<PlaceInModule> parse_place(std::string_view site);

struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;  // "": unknown
};
// Reads regular files only, of at most 1 GiB. Takes milliseconds; tens of them for large ones.
std::optional<SourceLine> find_source_line(const PlaceInModule& place);

}  // namespace ccom
