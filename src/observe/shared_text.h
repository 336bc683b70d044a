// SPDX-License-Identifier: Apache-2.0
//
// Texts in words of shared memory, to be written and read under a SequenceLock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ccom {

// What does not fit is cut off.
template <size_t count>
void store_text(std::array<std::atomic<uint64_t>, count>& words, std::string_view text) {
  std::array<uint64_t, count> packed{};
  text.copy(reinterpret_cast<char*>(packed.data()), sizeof packed);
  for (size_t i = 0; i < count; ++i) words[i].store(packed[i], std::memory_order_release);
}

template <size_t count>
void load_words(const std::array<std::atomic<uint64_t>, count>& words, std::array<uint64_t, count>& into) {
  for (size_t i = 0; i < count; ++i) into[i] = words[i].load(std::memory_order_acquire);
}

// Control characters become spaces: another process wrote it, and it stands in logs and terminals.
template <size_t count>
std::string text_in(const std::array<uint64_t, count>& words) {
  const auto* const begin = reinterpret_cast<const char*>(words.data());
  std::string text(begin, ::strnlen(begin, sizeof words));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return text;
}

}  // namespace ccom
