// SPDX-License-Identifier: Apache-2.0
//
// A few short texts in shared memory, to which other words there refer: call sites and names of algorithms. When there
// are more, the one that was not used for the longest time makes room; who reads a reference to it finds no text.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "observe/sequence_lock.h"

namespace ccom {

// Zeroed memory is an empty one. One rank writes, anybody reads.
struct alignas(64) TextTable {
  static constexpr size_t kTexts = 32;
  static constexpr size_t kTextBytes = 120;  // longer ones lose their end
  struct Entry {
    SequenceLock lock;
    std::array<std::atomic<uint64_t>, kTextBytes / 8> words;  // ends in zeros unless it is full
  };
  std::array<Entry, kTexts> entries;

  // Which entry, and which of its texts; never 0.
  static uint32_t reference(size_t index, uint64_t updates) {
    return static_cast<uint32_t>(index + 1) | static_cast<uint32_t>(updates) << 8;
  }
  uint32_t put(size_t index, std::string_view text);
  // "" if the text is no longer there.
  std::string find(uint32_t reference) const;
};

// The writer's memory of what is in a table. Belongs to whoever has the turn.
class TextIndex {
 public:
  explicit TextIndex(TextTable& table) : table_(table) {}

  // The reference to the text of `key`, which stands for the same text always; text(): what it is, called when it is
  // not in the table. A nanosecond for the key of the call before.
  template <typename Fn>
  uint32_t of(uint64_t key, Fn text) {
    if (key == last_key_) [[likely]]
      return last_;
    uint32_t found = look_up(key);
    if (found == 0) found = put(key, text());
    last_key_ = key;
    return last_ = found;
  }
  // The same beside the texts that of() gives in turn.
  uint32_t of_another(uint64_t key, std::string_view text) {
    const uint32_t found = look_up(key);
    return found != 0 ? found : put(key, text);
  }

 private:
  uint32_t look_up(uint64_t key);
  uint32_t put(uint64_t key, std::string_view text);

  TextTable& table_;
  uint64_t last_key_ = 0;  // no text has the key 0
  uint32_t last_ = 0;
  uint64_t time_ = 0;  // counts look-ups
  std::array<uint64_t, TextTable::kTexts> keys_{}, used_{};
  std::array<uint32_t, TextTable::kTexts> references_{};
};

}  // namespace ccom
