// SPDX-License-Identifier: Apache-2.0
#include "observe/rank_activity.h"

#include <algorithm>

#include "observe/message_activity.h"
#include "observe/shared_text.h"
#include "observe/source_line.h"

namespace ccom {
namespace {

struct Times {
  uint64_t begun = 0, begun_ns = 0, ended = 0, ended_ns = 0, waits_in = 0, waits_for = 0, waits_since_ns = 0;
};

uint64_t value(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_acquire); }

Times times_of(const ActivityRecord& record) {
  Times found;
  const ActivityRecord::Times& times = record.times;
  const bool is_whole = times.lock.read([&] {
    found = {value(times.begun),    value(times.begun_ns),  value(times.ended),         value(times.ended_ns),
             value(times.waits_in), value(times.waits_for), value(times.waits_since_ns)};
  });
  return is_whole ? found : Times();
}

double seconds_since(uint64_t ns, int64_t now_ns) {
  return std::max(0.0, static_cast<double>(now_ns - static_cast<int64_t>(ns)) * 1e-9);
}

// What the rank was in at one instant: has it ended the last call that it has begun?
struct Instant {
  uint64_t begun = 0, ended = 0, turns = 0;
  bool in_call() const { return ended < begun; }
};

// A rank that makes one call after another would seldom be found in one: it is looked for a few times.
Instant look(const ActivityRecord& record) {
  constexpr int kLooks = 8;
  Instant found;
  for (int i = 0; i < kLooks; ++i) {
    found.begun = value(record.calls.begun);
    found.turns = value(record.transfers.turns);
    found.ended = value(record.calls.ended);
    if (found.in_call() || found.turns % 2 == 1 || value(record.calls.begun) == found.begun) break;
  }
  return found;
}

void read_pulse(const ActivityRecord& record, const Instant& at, const Times& times, int64_t now_ns,
                RankActivity& activity) {
  uint64_t beat_ns = 0, ended = 0, seen_ns = 0, turns = 0;
  const ActivityRecord::Pulse& pulse = record.pulse;
  const bool is_whole = pulse.lock.read([&] {
    beat_ns = value(pulse.beat_ns);
    ended = value(pulse.ended);
    seen_ns = value(pulse.seen_ns);
    turns = value(pulse.transfers);
  });
  if (is_whole && beat_ns != 0) activity.silent = seconds_since(beat_ns, now_ns);
  if (activity.state != RankActivity::State::Outside) return;
  const bool is_timed = times.ended == at.ended && at.ended != 0 && turns == at.turns;
  if (is_whole && ended == at.ended && turns == at.turns && seen_ns != 0) {
    activity.seconds = seconds_since(is_timed && turns == 0 ? std::min(seen_ns, times.ended_ns) : seen_ns, now_ns);
  } else {
    activity.seconds = 0;  // it was in one when the liveness thread looked last
  }
}

void read_wait(const Times& times, uint64_t number, int64_t now_ns, RankActivity& activity) {
  if (times.begun == number) activity.seconds = seconds_since(times.begun_ns, now_ns);
  if (times.waits_in != number) return;
  activity.waits_for = static_cast<Rank>(times.waits_for);
  activity.waited = seconds_since(times.waits_since_ns, now_ns);
  activity.seconds = std::max(activity.seconds, activity.waited);
}

void read_message(const ActivityRecord& record, int64_t now_ns, RankActivity& activity) {
  const ActivityRecord::Messages& messages = record.messages;
  activity.messages = static_cast<uint32_t>(std::min<uint64_t>(value(messages.pending), UINT32_MAX));
  if (activity.state != RankActivity::State::Outside) return;
  uint64_t since_ns = 0;
  MessageEnd end;
  std::array<uint64_t, ActivityRecord::Messages::kSiteBytes / 8> site{};
  const bool is_whole = messages.lock.read([&] {
    since_ns = value(messages.waits_since_ns);
    end = {value(messages.sends) != 0, static_cast<Rank>(value(messages.peer) - 1),
           static_cast<int64_t>(value(messages.tag)), value(messages.bytes)};
    load_words(messages.site, site);
  });
  if (!is_whole || since_ns == 0) return;
  activity.state = RankActivity::State::Message;
  activity.message = text_of(end);
  activity.site = text_in(site);
  activity.waits_for = end.peer;
  activity.seconds = activity.waited = seconds_since(since_ns, now_ns);
}

std::string read_place(const ActivityRecord::Place& place, const RankActivity& activity, int64_t now_ns) {
  std::array<uint64_t, ActivityRecord::Place::kTextBytes / 8> words{};
  uint64_t told_ns = 0;
  const bool is_whole = place.lock.read([&] {
    told_ns = value(place.told_ns);
    load_words(place.words, words);
  });
  const bool is_of_now = told_ns != 0 && (activity.seconds < 0 || seconds_since(told_ns, now_ns) <= activity.seconds);
  return is_whole && is_of_now ? text_in(words) : "";
}

}  // namespace

RankActivity read_unresolved_activity(const ActivityRecord& record, int64_t now_ns) {
  RankActivity activity;
  const Instant at = look(record);
  const Times times = times_of(record);
  CallOrigin origin;
  activity.call.number = at.begun;
  if (const auto call = record.calls.find(at.begun, &origin)) activity.call = *call;
  activity.state = RankActivity::State::Outside;
  if (at.in_call()) {
    activity.state = RankActivity::State::InCall;
    read_wait(times, at.begun, now_ns, activity);
  } else if (at.turns % 2 == 1) {
    activity.state = RankActivity::State::Transfers;
    origin = {static_cast<uint32_t>(value(record.transfers.site)), 0};
    read_wait(times, UINT64_MAX, now_ns, activity);
  }
  activity.algorithm = record.texts.find(origin.algorithm);
  activity.site = record.texts.find(origin.site);
  read_message(record, now_ns, activity);
  read_pulse(record, at, times, now_ns, activity);
  if (activity.state == RankActivity::State::Outside) activity.place = read_place(record.place, activity, now_ns);
  return activity;
}

RankActivity read_activity(const ActivityRecord& record, int64_t now_ns, bool reads_files) {
  RankActivity activity = read_unresolved_activity(record, now_ns);
  activity.site = with_source_line(activity.site, reads_files);
  activity.place = with_source_line(activity.place, reads_files);
  return activity;
}

uint32_t ask_place(ActivityRecord& record) { return record.place.asked.fetch_add(1, std::memory_order_acq_rel) + 1; }

bool is_place_told(const ActivityRecord& record, uint32_t question) {
  if (record.place.can_tell.load(std::memory_order_relaxed) == 0) return true;
  return static_cast<int32_t>(static_cast<uint32_t>(value(record.place.answered)) - question) >= 0;
}

}  // namespace ccom
