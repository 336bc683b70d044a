// SPDX-License-Identifier: Apache-2.0
#include "observe/text_table.h"

#include <algorithm>

#include "observe/shared_text.h"

namespace ccom {

uint32_t TextTable::put(size_t index, std::string_view text) {
  Entry& entry = entries[index];
  entry.lock.write([&] { store_text(entry.words, text); });
  return reference(index, entry.lock.updates());
}

std::string TextTable::find(uint32_t wanted) const {
  const size_t index = (wanted & 0xff) - 1;
  if (index >= kTexts) return "";
  const Entry& entry = entries[index];
  std::array<uint64_t, kTextBytes / 8> words{};
  uint64_t updates = 0;
  const bool is_whole = entry.lock.read([&] {
    updates = entry.lock.updates();
    load_words(entry.words, words);
  });
  return is_whole && reference(index, updates) == wanted ? text_in(words) : "";
}

uint32_t TextIndex::look_up(uint64_t key) {
  ++time_;
  if (last_ != 0) used_[(last_ & 0xff) - 1] = time_;  // of() does not come here for it
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] != key) continue;
    used_[i] = time_;
    return references_[i];
  }
  return 0;
}

uint32_t TextIndex::put(uint64_t key, std::string_view text) {
  if (text.empty()) return 0;
  const auto index = static_cast<size_t>(std::ranges::min_element(used_) - used_.begin());
  keys_[index] = key;
  used_[index] = time_;
  return references_[index] = table_.put(index, text);
}

}  // namespace ccom
