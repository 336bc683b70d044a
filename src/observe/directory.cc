// SPDX-License-Identifier: Apache-2.0
#include "observe/directory.h"

#include <algorithm>
#include <cstddef>

#include "observe/shared_text.h"

namespace ccom {
namespace {

constexpr int kMostRanks = 1 << 24;

template <typename T>
T value(const std::atomic<T>& word) {
  return word.load(std::memory_order_acquire);
}

template <size_t count>
std::string text_of(const std::array<std::atomic<uint64_t>, count>& words) {
  std::array<uint64_t, count> loaded{};
  load_words(words, loaded);
  return text_in(loaded);
}

std::optional<CommunicatorEntry> read_entry(const Directory::Entry& entry) {
  CommunicatorEntry found;
  bool is_used = false;
  const bool is_whole = entry.lock.read([&] {
    is_used = value(entry.is_used) != 0;
    found.communicator = value(entry.communicator);
    found.parent = value(entry.parent);
    found.rank = value(entry.rank);
    found.ranks = value(entry.ranks);
    found.hosts = value(entry.hosts);
    found.host = value(entry.host);
    found.slot = value(entry.slot);
    found.slots = value(entry.slots);
    found.board_fd = value(entry.board_fd);
    found.board_offset = value(entry.board_offset);
    found.begun_ns = static_cast<int64_t>(value(entry.begun_ns));
    found.name = text_of(entry.name);
    found.host_name = text_of(entry.host_name);
  });
  if (!is_whole || !is_used) return std::nullopt;
  const bool makes_sense = found.ranks >= 1 && found.ranks <= kMostRanks && found.rank >= 0 &&
                           found.rank < found.ranks && found.hosts >= 1 && found.hosts <= found.ranks &&
                           found.host >= 0 && found.host < found.hosts && found.slots >= 1 &&
                           found.slots <= found.ranks && found.slot >= 0 && found.slot < found.slots &&
                           found.board_fd >= 0 && found.begun_ns >= 0;
  return makes_sense ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace

void Directory::put(size_t index, const CommunicatorEntry& from) {
  Entry& entry = entries[index];
  entry.lock.write([&] {
    const auto store = [](auto& word, auto number) { word.store(number, std::memory_order_release); };
    store(entry.communicator, from.communicator);
    store(entry.parent, from.parent);
    store(entry.rank, from.rank);
    store(entry.ranks, from.ranks);
    store(entry.hosts, from.hosts);
    store(entry.host, from.host);
    store(entry.slot, from.slot);
    store(entry.slots, from.slots);
    store(entry.board_fd, from.board_fd);
    store(entry.board_offset, from.board_offset);
    store(entry.begun_ns, static_cast<uint64_t>(from.begun_ns));
    store_text(entry.name, from.name);
    store_text(entry.host_name, from.host_name);
    store(entry.is_used, uint64_t{1});
  });
  if (used.load(std::memory_order_relaxed) <= index) used.store(index + 1, std::memory_order_release);
}

void Directory::clear(size_t index) {
  Entry& entry = entries[index];
  entry.lock.write([&] { entry.is_used.store(0, std::memory_order_release); });
}

std::optional<DirectoryContents> read_directory(ConstBytes bytes) {
  if (bytes.size() < offsetof(Directory, entries)) return std::nullopt;
  const auto& directory = *reinterpret_cast<const Directory*>(bytes.data());
  if (value(directory.magic) != Directory::kMagic) return std::nullopt;
  DirectoryContents contents;
  contents.unlisted = value(directory.unlisted);
  const size_t present =
      std::min((bytes.size() - offsetof(Directory, entries)) / sizeof(Directory::Entry), Directory::kEntries);
  const size_t used = std::min<uint64_t>(value(directory.used), present);
  for (size_t i = 0; i < used; ++i)
    if (auto entry = read_entry(directory.entries[i])) contents.entries.push_back(*std::move(entry));
  return contents;
}

}  // namespace ccom
