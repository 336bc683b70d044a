// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/lost_rails.h"

#include "base/fork.h"

namespace ccom::tcp {

bool LostRails::add(const std::string& rail) {
  const Lock lock(mutex_);
  return rails_.insert(rail).second;
}

bool LostRails::remove(const std::string& rail) {
  const Lock lock(mutex_);
  return rails_.erase(rail) > 0;
}

LostRails& lost_rails() {
  static constinit PerProcess<LostRails> lost;
  return lost.get();
}

}  // namespace ccom::tcp
