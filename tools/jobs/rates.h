// SPDX-License-Identifier: Apache-2.0
//
// What has changed between two looks, per second. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tools/jobs/seen.h"

namespace ccom {

struct Rate {
  double calls = 0, bytes = 0;      // per second
  double in_calls = 0, waited = 0;  // shares of the time
};

struct LinkRate {
  double sent = 0, received = 0;  // bytes per second
  double retransmits = 0;         // segments per second
  double sending = 0;             // share of the time
};

class Rates {
 public:
  Rates(const HostSeen& before, const HostSeen& now);

  // Of a rank of this host; nothing if it was not seen before.
  std::optional<Rate> of(uint64_t communicator, Rank rank) const;
  // The mean of the ranks that are seen.
  std::optional<Rate> of(const CommunicatorSeen& communicator) const;
  std::optional<LinkRate> of(const LinkSeen& link) const;

 private:
  std::map<std::pair<uint64_t, Rank>, Rate> ranks_{};
  std::map<std::tuple<int32_t, std::string, std::string>, LinkRate> links_{};
};

}  // namespace ccom
