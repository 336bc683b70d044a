// SPDX-License-Identifier: Apache-2.0
//
// Completion scripts for bash, zsh and fish, written from what a program says of its own command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ccom {

// A word of a command line: an option, or one at a place.
struct WordShape {
  std::vector<std::string> names;  // "-b", "--begin"; none at a place
  std::string help;
  bool takes_value = true;
  bool is_list = false;             // values separated by commas; at a place, also several words
  std::vector<std::string> values;  // to offer; others may be valid
  bool is_file = false;             // files are offered
};

struct ProgramShape {
  std::string name;
  std::vector<WordShape> words;  // those at places in the order of their places
};

// nullopt if `shell` is none of bash, zsh and fish.
std::optional<std::string> completion_for(std::string_view shell, const ProgramShape& program);

}  // namespace ccom
