// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

namespace ccom {

std::string name_ranks(const std::vector<Rank>& ranks) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i <= 2) end = i + 1;  // "2 and 3" reads better than "2-3"
    std::string run = std::to_string(ranks[i]);
    if (end - i > 1) run += "-" + std::to_string(ranks[end - 1]);
    runs.push_back(std::move(run));
    i = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += i + 1 == runs.size() ? " and " : ", ";
    text += runs[i];
  }
  return text;
}

uint64_t hash_of_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace ccom
