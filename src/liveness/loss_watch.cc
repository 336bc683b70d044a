// SPDX-License-Identifier: Apache-2.0
#include "liveness/loss_watch.h"

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "liveness/monitor_config.h"

namespace ccom {
namespace {

// More than the trees need. A stopped process makes no error of what it hears.
constexpr int64_t kMostSettlingNs = 3 * kDecisionNs / 2;

}  // namespace

LossWatch::LossWatch(Board board, const MonitorConfig& config, uint64_t process, std::function<void()> wake)
    : board_(board),
      config_(config),
      wake_(std::move(wake)),
      node_(board, {.host = config.hosts[static_cast<size_t>(config.host_index)].name,
                    .ranks = config.hosts[static_cast<size_t>(config.host_index)].ranks,
                    .own_slot = slot_of(config),
                    .process = process,
                    .dead_ns = config.dead_ms * kNsPerMs}) {
  if (tree_count(config.hosts) == 0) return;
  for (int slot = 0; slot < std::min(kTreeMembers, board.slots()); ++slot) members_.push_back(slot);
}

std::optional<Status> LossWatch::check(int64_t now_ns) {
  if (board_.slots() == 1) return std::nullopt;
  std::optional<Status> found = node_.find_failures(now_ns);
  if (!found || members_.empty() || is_overdue(now_ns)) return found;
  if (note(*found)) wake_();
  return std::nullopt;
}

bool LossWatch::note(const Status& loss) const {
  bool is_new = false;
  for (const Rank rank : loss.peers()) is_new |= board_.note_lost(rank);
  return is_new;
}

void LossWatch::hear(const Status& loss) {
  note(loss);
  heard_.push_back(loss);
}

// The board is read first: it knows who was lost, and a look at the host and the trees know more, how.
std::vector<Status> LossWatch::take_new(int64_t now_ns) {
  const std::vector<Rank> noted = board_.lost();
  std::vector<Status> found = std::exchange(heard_, {});
  const std::optional<Status> own = board_.slots() > 1 ? node_.find_failures(now_ns) : std::nullopt;
  if (own && own->peers() != found_) {
    found_ = own->peers();
    note(*own);
    found.push_back(*own);
  }
  for (; taken_ < noted.size(); ++taken_) {
    const Rank rank = noted[taken_];
    const auto names_it = [rank](const Status& loss) { return std::ranges::binary_search(loss.peers(), rank); };
    if (std::ranges::none_of(found, names_it)) found.push_back(loss_of(rank));
  }
  return found;
}

bool LossWatch::is_overdue(int64_t now_ns) {
  int64_t first_ns = 0;
  if (first_ns_.compare_exchange_strong(first_ns, now_ns)) first_ns = now_ns;
  const auto has_ended = [this](int slot) { return board_.has_died(slot) || board_.has_left(slot); };
  return now_ns - first_ns > kMostSettlingNs || std::ranges::all_of(members_, has_ended);
}

Status LossWatch::loss_of(Rank rank) const {
  const HostMembers* const host = host_of(config_.hosts, rank);
  const std::string name = host == nullptr ? "unknown" : host->name;
  return error(ErrorKey::RankUnreachable, "rank %d on host %s died or is unreachable", rank, name.c_str())
      .with_peers({rank})
      .with_host(name)
      .with_cure(
          "check that rank's output and the kernel log of its host; restart the job, or shrink the communicator to the "
          "survivors");
}

}  // namespace ccom
