// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous for ranks that are threads of one process. Same rules and texts as over gRPC: both drive a Gathering.
#pragma once

#include <memory>

#include "bootstrap/rendezvous.h"

namespace ccom {

// The hall in which the threads meet. Thread-safe; shared by the hub's maker and every rendezvous that came from it.
class LocalHub {
 public:
  static std::shared_ptr<LocalHub> create();
  virtual ~LocalHub() = default;
  // Never blocks. The errors of connect_rendezvous that concern rank and nranks.
  virtual Result<std::unique_ptr<Rendezvous>> join(int nranks, Rank rank) = 0;
};

}  // namespace ccom
