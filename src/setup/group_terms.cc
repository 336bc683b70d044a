// SPDX-License-Identifier: Apache-2.0
#include "setup/group_terms.h"

#include <algorithm>

#include "base/secret.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {

Result<uint64_t> agree_on_group(const std::vector<Rank>& ranks, const CommConfig& config, Rendezvous& rendezvous,
                                Deadline deadline) {
  wire::GroupTerms mine;
  mine.set_nonce(random_u64());
  mine.set_settings(config.fingerprint());
  for (const Rank rank : ranks) mine.add_ranks(rank);
  CCOM_TRY_ASSIGN(const std::vector<wire::GroupTerms> all,
                  exchange(rendezvous, "group", Result<wire::GroupTerms>(mine), deadline));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!std::ranges::equal(all[i].ranks(), all[0].ranks()))
      return error(Code::ConfigError, "rank %d creates a group of other ranks than rank %d", ranks[i], ranks[0])
          .with_peers({ranks[i]})
          .with_cure("list the same ranks in the same order on all ranks of a group");
    if (all[i].settings() == all[0].settings()) continue;
    return error(ErrorKey::SettingsDiffer, "rank %d differs from rank %d in settings: %s", ranks[i], ranks[0],
                 difference_of_settings(all[i].settings(), all[0].settings()).c_str())
        .with_peers({ranks[i]})
        .with_cure("give all ranks of a group the same config");
  }
  return all[0].nonce();
}

}  // namespace ccom
