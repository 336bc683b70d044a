// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "setup/comm_setup.h"

namespace ccom {
namespace {

// First byte of an exchanged string.
constexpr char kGood = '+';
constexpr char kBad = '!';

}  // namespace

Result<std::vector<std::string>> exchange(Rendezvous& rendezvous, std::string_view phase, Result<std::string> mine,
                                          Deadline deadline) {
  std::string sent = mine ? kGood + *mine
                          : kBad + std::to_string(static_cast<int>(mine.error().code())) + " " + mine.error().message();
  CCOM_TRY_ASSIGN(std::vector<std::string> all, rendezvous.all_gather(phase, std::move(sent), deadline));
  if (!mine) return std::move(mine).error();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty() || all[rank][0] != kGood) {
      const size_t space = std::min(all[rank].find(' '), all[rank].size());
      const int code = all[rank].size() > 1 ? std::atoi(all[rank].c_str() + 1) : 0;
      return error(code != 0 ? static_cast<Code>(code) : Code::InternalError, "rank %zu, %s: %s", rank,
                   std::string(phase).c_str(), all[rank].substr(std::min(space + 1, all[rank].size())).c_str())
          .with_peers({static_cast<int>(rank)});
    }
    all[rank].erase(0, 1);
  }
  return all;
}

}  // namespace ccom
