// SPDX-License-Identifier: Apache-2.0
//
// The rails that this process has lost, so that a loss is said once, however many channels it concerns.
#pragma once

#include <set>
#include <string>

#include "base/mutex.h"

namespace ccom::tcp {

// A rail: the addresses that it joins, as text. Thread-safe.
class LostRails {
 public:
  // Whether it is new.
  bool add(const std::string& rail);
  // It is in use again, or who has lost it has ended. Whether it was there: others may have lost it, too.
  bool remove(const std::string& rail);

 private:
  Mutex mutex_;
  std::set<std::string> rails_ CCOM_GUARDED_BY(mutex_);
};

// Of this process.
LostRails& lost_rails();

}  // namespace ccom::tcp
