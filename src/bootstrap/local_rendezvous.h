// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous for ranks that are threads of one process. Uses Gathering, so rules and error texts equal those over gRPC.
#pragma once

#include <memory>

#include "bootstrap/rendezvous.h"

namespace ccom {

// Shared rendezvous state. Thread-safe; owned jointly by its creator and the rendezvous objects it has created.
class LocalHub {
 public:
  static std::shared_ptr<LocalHub> create();
  virtual ~LocalHub() = default;
  // Never blocks. Errors: those of connect_rendezvous() about rank and nranks.
  virtual Result<std::unique_ptr<Rendezvous>> join(int nranks, Rank rank) = 0;
};

}  // namespace ccom
