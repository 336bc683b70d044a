// SPDX-License-Identifier: Apache-2.0
//
// A torus of any dimensions for the lint: messages go along one dimension after another, the last first, the short way
// round, as the loads of algorithms/streams.h take it.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/streams.h"
#include "plan/lint.h"

namespace ccom {

// A member's link in dimension d: number 2 (member * dimensions + d), backwards one more; a ring of two has the first
// only. `speeds`: by dimension, 1 if there are none.
class TorusFabric {
 public:
  explicit TorusFabric(std::vector<int> dims, const std::vector<double>& speeds = {}) : dims_(std::move(dims)) {
    members_ = 1;
    for (const int size : dims_) members_ *= static_cast<uint32_t>(size);
    if (speeds.empty()) return;
    for (uint32_t link = 0; link < links(); ++link) weights_.push_back(1 / speeds[dim_of(link)]);
  }

  uint32_t links() const { return 2 * members_ * static_cast<uint32_t>(dims_.size()); }
  size_t dim_of(uint32_t link) const { return link / 2 % dims_.size(); }

  LintFabric fabric() const {
    const auto path = std::make_shared<std::vector<uint32_t>>();
    return {links(),
            [dims = dims_, path](Rank from, Rank to) -> std::span<const uint32_t> {
              path->clear();
              auto at = static_cast<uint32_t>(from);
              for (size_t d = dims.size(); d-- > 0;) {
                const auto dim = static_cast<uint8_t>(d);
                const uint32_t size = Grid(dims, at).size(dim);
                const uint32_t target = Grid(dims, static_cast<uint32_t>(to)).coordinate(dim);
                const bool forward = 2 * ((target + size - Grid(dims, at).coordinate(dim)) % size) <= size;
                while (Grid(dims, at).coordinate(dim) != target) {
                  path->push_back(2 * (at * static_cast<uint32_t>(dims.size()) + dim) + (forward ? 0 : 1));
                  at = Grid(dims, at).at(dim, (Grid(dims, at).coordinate(dim) + (forward ? 1 : size - 1)) % size);
                }
              }
              return *path;
            },
            weights_};
  }

 private:
  std::vector<int> dims_;
  uint32_t members_;
  std::vector<double> weights_;
};

}  // namespace ccom
