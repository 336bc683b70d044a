// SPDX-License-Identifier: Apache-2.0
//
// Memory of another process, of any contents.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>

#include "tests/fuzz/target.h"

namespace ccom::fuzz {

// Zeroed memory, aligned as mappings are.
class Memory {
 public:
  explicit Memory(size_t size_bytes)
      : bytes_(static_cast<std::byte*>(::operator new[](size_bytes, kAlignment)), size_bytes) {
    std::ranges::fill(bytes_, std::byte{0});
  }
  ~Memory() { ::operator delete[](bytes_.data(), kAlignment); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Bytes bytes() const { return bytes_; }
  // Pieces: where, and up to 32 bytes.
  void fill(Reader& reader) const {
    while (!reader.is_empty()) {
      const size_t at = reader.below(bytes_.size());
      const ConstBytes piece = reader.take(1 + reader.below(32));
      std::ranges::copy(piece.first(std::min(piece.size(), bytes_.size() - at)),
                        bytes_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  Bytes bytes_;
};

}  // namespace ccom::fuzz
