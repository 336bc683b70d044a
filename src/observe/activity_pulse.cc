// SPDX-License-Identifier: Apache-2.0
#include "observe/activity_pulse.h"

#include "observe/listing.h"
#include "observe/locator.h"
#include "observe/recorder.h"
#include "observe/shared_text.h"

namespace ccom {

void ActivityPulse::beat(int64_t now_ns) {
  const uint64_t calls = record_.calls.ended.load(std::memory_order_acquire);
  const uint64_t transfers = record_.transfers.turns.load(std::memory_order_acquire);
  if (seen_ns_ == 0 || calls != calls_ || transfers != transfers_) {
    calls_ = calls;
    transfers_ = transfers;
    seen_ns_ = static_cast<uint64_t>(now_ns);
  }
  record_.place.can_tell.store(has_locator() || has_other_communicators() ? 1 : 0, std::memory_order_relaxed);
  ActivityRecord::Pulse& pulse = record_.pulse;
  pulse.lock.write([&] {
    pulse.beat_ns.store(static_cast<uint64_t>(now_ns), std::memory_order_release);
    pulse.ended.store(calls_, std::memory_order_release);
    pulse.seen_ns.store(seen_ns_, std::memory_order_release);
    pulse.transfers.store(transfers_, std::memory_order_release);
  });
  Recorder::note_alive();
}

bool ActivityPulse::is_asked() const {
  const ActivityRecord::Place& place = record_.place;
  return place.asked.load(std::memory_order_acquire) != place.answered.load(std::memory_order_relaxed);
}

bool ActivityPulse::answer(int64_t now_ns) {
  constexpr int64_t kGiveUpNs = 1'000'000'000;
  if (!is_asked()) return false;
  ActivityRecord::Place& place = record_.place;
  const uint32_t question = place.asked.load(std::memory_order_acquire);
  if (question != question_) {
    question_ = question;
    asked_ns_ = now_ns;
  }
  std::optional<Located> found;
  if (std::string call = call_elsewhere(record_, now_ns); !call.empty()) found = {std::move(call), now_ns};
  if (!found) found = locate_since(asked_ns_);
  if (!found && has_locator() && now_ns - asked_ns_ < kGiveUpNs) return true;
  place.lock.write([&] {
    store_text(place.words, found ? found->text : "");
    place.told_ns.store(found ? static_cast<uint64_t>(found->at_ns) : 0, std::memory_order_release);
    place.answered.store(question, std::memory_order_release);
  });
  return false;
}

}  // namespace ccom
