// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the symbolic memory of all ranks of a program, by blocks of tiles.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "plan/program.h"
#include "plan/value.h"

namespace ccom {

// The blocks of a rank's user buffers, and where they are.
std::vector<BlockAt> input_blocks(const Program& program, Rank rank);
std::vector<BlockAt> output_blocks(const Program& program, Rank rank);

class ProgramMemory {
 public:
  ProgramMemory(const Program& program, const std::vector<bool>& in_place) : program_(program), in_place_(in_place) {}

  void clear() { cells_.clear(); }
  bool in_place(Rank rank) const {
    return !in_place_.empty() && in_place_[static_cast<size_t>(rank) % in_place_.size()];
  }

  // What lies there; nothing: not written.
  std::optional<Value> load(Rank rank, size_t tile, const BlockAt& at) const;
  void store(Rank rank, size_t tile, const BlockAt& at, const std::optional<Value>& value);

  // While messages read or write a place. `part`: whose messages.
  void lock(Rank rank, size_t tile, const BlockAt& at, bool writes);
  void unlock(Rank rank, size_t tile, const BlockAt& at, bool writes);
  bool may_read(Rank rank, size_t tile, const BlockAt& at) const;
  bool may_write(Rank rank, size_t tile, const BlockAt& at) const;

 private:
  // Scratch: the bank instead of the tile.
  using Key = std::tuple<Rank, Buffer, size_t, uint32_t>;
  struct Cell {
    std::optional<Value> value{};
    int readers = 0, writers = 0;
  };
  Key key(Rank rank, size_t tile, const BlockAt& at) const;

  const Program& program_;
  const std::vector<bool>& in_place_;
  std::map<Key, Cell> cells_;
};

}  // namespace ccom
