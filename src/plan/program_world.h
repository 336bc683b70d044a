// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the symbolic memory of all ranks of a program, by blocks of tiles.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "plan/program.h"
#include "plan/value.h"

namespace ccom {

// What a collective's user buffers hold and must hold, in blocks.
class ProgramSpec {
 public:
  explicit ProgramSpec(const Program& program) : program_(program) {}

  std::vector<BlockAt> inputs(Rank rank) const;
  std::vector<BlockAt> outputs(Rank rank) const;
  bool sums() const { return reduces(program_.collective); }
  // What `rank` contributes of a block.
  Value contribution(Rank rank, uint32_t block, size_t tile) const;
  // Ranks whose contributions a complete block holds.
  std::vector<Rank> contributors(uint32_t block) const;
  // "rank 3's contribution is missing", for a sum that is not the expected one.
  std::string what_is_wrong(uint32_t block, size_t tile, uint64_t sum) const;

 private:
  template <typename ItemOf>
  std::vector<BlockAt> blocks(Buffer buffer, uint32_t units, ItemOf item_of) const;

  const Program& program_;
};

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
