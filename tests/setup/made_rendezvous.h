// SPDX-License-Identifier: Apache-2.0
//
// A rendezvous whose answers the test makes.
#pragma once

#include <functional>

#include "bootstrap/rendezvous.h"

namespace ccom {

class MadeRendezvous final : public Rendezvous {
 public:
  using Parts = Result<std::vector<std::string>>;
  using Gather = std::function<Parts(std::string_view phase, std::string mine, Deadline deadline)>;
  explicit MadeRendezvous(Gather gather, Rendezvous* real = nullptr) : gather_(std::move(gather)), real_(real) {}
  Parts all_gather(std::string_view phase, std::string mine, Deadline deadline) override {
    return gather_(phase, std::move(mine), deadline);
  }
  bool has_failed() override { return real_ != nullptr && real_->has_failed(); }

 private:
  const Gather gather_;
  Rendezvous* const real_;
};

}  // namespace ccom
