// SPDX-License-Identifier: Apache-2.0
//
// What a communicator shows of itself: to tools of the same user by the process's directory, and by CCOM_METRICS.
#include <new>

#include "setup/comm_setup.h"

namespace ccom {

// Ranks of one host may be different processes, which would replace one another's file.
Status CommSetup::check_metrics() const {
  if (!config_.metrics.is_file() || needs_.ranks == 1 || tells_ranks_apart(config_.metrics.path)) return {};
  return error(ErrorKey::VariableValue, "CCOM_METRICS=%s: %d ranks of this host would write that file",
               config_.metrics.path.c_str(), needs_.ranks)
      .with_cure("put %r, the rank, into its name, as /run/ccom-%r.prom");
}

// Where there is no memory for it, the communicator works all the same.
void CommSetup::show() noexcept try {
  const int host = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  const std::string& host_name = topology_.hosts[static_cast<size_t>(host)].name;
  const int hosts = static_cast<int>(topology_.hosts.size());
  if (const std::optional<HostSegment::BoardPlace> board = segment_->board_place()) {
    listing_ = Listing({.communicator = membership_.communicator,
                        .parent = parent_,
                        .rank = membership_.rank,
                        .ranks = membership_.nranks,
                        .hosts = hosts,
                        .host = host,
                        .slot = segment_->local_rank(),
                        .slots = needs_.ranks,
                        .board_fd = board->fd,
                        .board_offset = board->offset_bytes,
                        .begun_ns = begun_ns_,
                        .name = config_.name,
                        .host_name = host_name},
                       monitor_->activity().record());
  }
  published_ = PublishedRank(config_.metrics, {.communicator = membership_.communicator,
                                               .name = config_.name,
                                               .host = host_name,
                                               .rank = membership_.rank,
                                               .ranks = membership_.nranks,
                                               .hosts = hosts,
                                               .local_rank = segment_->local_rank(),
                                               .record = &monitor_->activity().record(),
                                               .has_failed = [this] { return monitor_->failed(); }});
} catch (const std::bad_alloc&) {
}

}  // namespace ccom
