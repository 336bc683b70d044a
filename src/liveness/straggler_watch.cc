// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_watch.h"

#include <thread>

#include "base/time.h"
#include "liveness/call_mismatch.h"

namespace ccom {
namespace {

// Enough for a straggler poll over four levels of the tree, with one check interval per host.
constexpr std::chrono::milliseconds kStragglerPollTime{150};

}  // namespace

StragglerReport StragglerWatch::ask_all_hosts(const std::function<void()>& wake,
                                              const std::function<bool()>& goes_on) const {
  const bool asked_before = ask(true);
  wake();
  for (const Deadline deadline = Deadline::after(kStragglerPollTime); !deadline.passed() && goes_on();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const StragglerReport found = on_all_hosts();
  ask(asked_before);
  return found;
}

std::optional<StragglerReport> StragglerWatch::poll(ControlTree& tree) const {
  const bool is_asked_for = board_.is_poll_asked_for();
  if (!tree.straggler_poll().is_on() && !is_asked_for) return std::nullopt;
  StragglerReport own = on_host();
  own.is_asked_for = is_asked_for;
  tree.poll_stragglers(std::move(own));
  StragglerReport found = tree.straggler_poll().result();
  const StragglerReport slowest{found.calls, found.ranks};
  if (board_.stragglers() != slowest) board_.publish_stragglers(slowest);
  return found;
}

std::optional<Status> difference_error(const StragglerReport& known, size_t nranks) {
  const auto found = known.find_difference();
  if (!found) return std::nullopt;
  const auto& [a, b] = *found;
  if (are_same(a.call, b.call)) {
    if (a.ranks + b.ranks < nranks) return std::nullopt;
    const auto before =
        std::ranges::find(known.begun, a.call.number - 1, [](const BegunCall& c) { return c.call.number; });
    return results_error(a, b, before == known.begun.end() ? "earlier calls" : text_of(before->call));
  }
  return mismatch_error(a.rank, text_of(a.call), b.rank, text_of(b.call));
}

}  // namespace ccom
