// SPDX-License-Identifier: Apache-2.0
#include "liveness/activity_report.h"

#include <algorithm>
#include <new>

#include "control/error_codec.h"

namespace ccom {

bool is_about_ranks(const Status& error) {
  const Code code = error.code();
  return code == Code::Timeout || code == Code::RemoteError || code == Code::Mismatch || code == Code::Aborted;
}

bool is_of_late_ranks(const Status& error) { return error.code() == Code::Timeout || error.code() == Code::Mismatch; }

Status with_activities(const Status& error, std::vector<RankActivity> activities) noexcept {
  constexpr size_t kLeast = 100, kReserve = 100;  // what is put before a message later has room
  const auto has_made_calls = [](const RankActivity& activity) {
    return activity.call.number > 0 || activity.state == RankActivity::State::Transfers ||
           activity.state == RankActivity::State::Message;
  };
  try {
    const size_t used = error.message().size() + kReserve;
    if (used + kLeast > kMaxErrorText || std::ranges::none_of(activities, has_made_calls)) return error;
    const std::string text = describe(std::move(activities), kMaxErrorText - used);
    if (text.empty()) return error;
    return Status(error.key(), error.message() + "; " + text)
        .with_peers(error.peers())
        .with_host(error.host())
        .with_cure(error.cure())
        .with_errno(error.sys_errno());
  } catch (const std::bad_alloc&) {
    return error;
  }
}

}  // namespace ccom
