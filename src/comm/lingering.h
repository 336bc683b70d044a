// SPDX-License-Identifier: Apache-2.0
//
// Communicators that were destroyed and still forward messages of other ranks, until the last rank of this process is
// destroyed: one thread may destroy several, one after another.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"

namespace ccom {

class Communicator;

// Thread-safe.
class Lingering {
 public:
  static Lingering& of_process();

  // A rank of that communicator begins; before the start of any of its ranks is over.
  void enter(uint64_t number);
  // One ends, and is kept. Returns all that were kept if it is the last one of this process; empty if not.
  std::vector<std::unique_ptr<Communicator>> leave(uint64_t number, std::unique_ptr<Communicator> ended);

 private:
  struct Ranks {
    size_t living = 0;
    std::vector<std::unique_ptr<Communicator>> ended;
  };
  Mutex mutex_;
  std::map<uint64_t, Ranks> ranks_ CCOM_GUARDED_BY(mutex_);  // by number of the communicator
};

}  // namespace ccom
