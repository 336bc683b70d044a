// SPDX-License-Identifier: Apache-2.0
//
// Records calls: what every call passes through.
#include <algorithm>
#include <array>

#include "observe/recorder.h"

namespace ccom {
namespace {

using recording::Communicator;
using recording::get;
using recording::PlaceState;
using recording::publish;
using recording::Record;
using recording::set;

constexpr size_t kLongestName = 128;

}  // namespace

CallRecorder::CallRecorder(Recorder& recorder, const Identity& identity) : recorder_(recorder), shared_(nullptr) {
  algorithm_.reserve(kLongestName);
  way_.reserve(kLongestName);
  recorder.note_time();
  const Lock lock(recorder.mutex_);
  shared_ = recorder.open_place(place_);
  if (shared_ == nullptr) return;
  Communicator& shared = *shared_;
  set(shared.state, static_cast<uint64_t>(PlaceState::None));
  turn_ = get(shared.turn) + 1;
  publish(shared.turn, turn_);
  publish(shared.number, identity.number);
  publish(shared.parent, identity.parent);
  publish(shared.rank, static_cast<uint64_t>(identity.rank));
  publish(shared.ranks, static_cast<uint64_t>(identity.nranks));
  publish(shared.name, recorder.keep(identity.name));
  publish(shared.topology, recorder.keep(identity.topology));
  publish(shared.costs, recorder.keep(identity.costs));
  const std::vector<Rank> none;
  const std::vector<Rank>& origins = identity.origins == nullptr ? none : *identity.origins;
  publish(shared.origins,
          recorder.keep({reinterpret_cast<const char*>(origins.data()), origins.size() * sizeof(Rank)}));
  publish(shared.opened, recorder.clock_.now());
  publish(shared.check, recording::check_of_communicator(Recorder::words_of(&shared)));
  publish(shared.closed, 0);
  publish(shared.waits_for, 0);
  publish(shared.current.ticket, 0);
  publish(shared.state, static_cast<uint64_t>(PlaceState::Open));
}

CallRecorder::~CallRecorder() {
  if (shared_ == nullptr) return;
  recorder_.note_time();
  const Lock lock(recorder_.mutex_);
  publish(shared_->closed, recorder_.clock_.now());
  publish(shared_->state, static_cast<uint64_t>(PlaceState::Closed));
}

void CallRecorder::begin(const CallDescriptor& call, CallSite site) {
  if (shared_ == nullptr) [[unlikely]]
    return;
  if (get(recorder_.sites_[site]) == 0 && site != 0) [[unlikely]]
    recorder_.name_site(site);
  current_ = {.ticket = 1,
              .begun = recorder_.clock_.now(),
              .ended = 0,
              .kind = call.kind,
              .count = call.count,
              .call = recording::pack_call(number_in(call.number), place_, 0),
              .waited = 0,
              .origin = site};
  Record& shown = shared_->current;
  publish(shown.begun, current_.begun);
  publish(shown.kind, current_.kind);
  publish(shown.count, current_.count);
  publish(shown.call, current_.call);
  show_origin();
  publish(shown.ticket, 1);
}

void CallRecorder::set_count(uint64_t count) {
  if (shared_ == nullptr) return;
  current_.count = count;
  publish(shared_->current.count, count);
  show_origin();
}

// The current call's, with its check.
void CallRecorder::show_origin() {
  publish(shared_->current.origin, current_.origin | recording::check_of(current_) << 32);
}

void CallRecorder::set_algorithm(std::string_view name) {
  if (shared_ == nullptr) return;
  if (name != algorithm_) [[unlikely]] {
    algorithm_.assign(name.substr(0, algorithm_.capacity()));
    algorithm_number_ = recorder_.number_of_algorithm(name);
    way_number_ = 0;
  }
  current_.origin = recording::pack_origin(recording::site_of(current_.origin), algorithm_number_);
  show_origin();
}

void CallRecorder::set_way(std::string_view name) {
  if (shared_ == nullptr || name.empty()) return;
  if (way_number_ == 0 || name != way_) [[unlikely]] {
    way_.assign(name.substr(0, way_.capacity()));
    std::array<char, 2 * kLongestName> text;
    const size_t bytes = std::min(algorithm_.size(), kLongestName - 2);
    char* end = std::copy_n(algorithm_.begin(), bytes, text.begin());
    end = std::ranges::copy(std::string_view(": "), end).out;
    end = std::copy_n(name.begin(), std::min(name.size(), kLongestName), end);
    way_number_ = recorder_.number_of_algorithm({text.data(), static_cast<size_t>(end - text.data())});
  }
  current_.origin = recording::pack_origin(recording::site_of(current_.origin), way_number_);
}

void CallRecorder::begin_wait(Rank peer) {
  if (shared_ == nullptr) return;
  waits_for_ = peer;
  wait_begun_ = recorder_.clock_.now();
  publish(shared_->waits_since, wait_begun_);
  publish(shared_->waits_for, recording::checked(static_cast<uint64_t>(peer) + 1));
}

void CallRecorder::end_wait() {
  if (shared_ == nullptr || wait_begun_ == 0) return;
  const uint64_t waited = recorder_.clock_.now() - wait_begun_;
  waited_ += waited;
  if (waited > longest_) {
    longest_ = waited;
    longest_peer_ = waits_for_;
  }
  wait_begun_ = 0;
  publish(shared_->waits_for, 0);
}

// Unless the block that it has is so old that others write there by now.
// Blocks end where the ring ends.
Record& CallRecorder::next_record() {
  const uint64_t records = recorder_.layout_.records;
  if (next_ == end_ || get(recorder_.header_->claimed) >= next_ + records - 2 * recording::kBlock) [[unlikely]] {
    next_ = recorder_.claim();
    end_ = next_ + recording::kBlock;
    record_ = &recorder_.records_[(next_ - 1) % records];
  }
  return *record_++;
}

void CallRecorder::end(Code code) {
  if (shared_ == nullptr) [[unlikely]]
    return;
  Record& record = next_record();
  current_.ticket = next_++;
  current_.ended = recorder_.clock_.now();
  if (code != Code::Ok) [[unlikely]]
    current_.call |= recording::pack_call(0, 0, static_cast<uint64_t>(code));
  current_.waited = recording::pack_waited(waited_, longest_peer_, turn_);
  set(record.ticket, 0);
  publish(record.begun, current_.begun);
  publish(record.ended, current_.ended);
  publish(record.kind, current_.kind);
  publish(record.count, current_.count);
  publish(record.call, current_.call);
  publish(record.waited, current_.waited);
  publish(record.origin, current_.origin | recording::check_of(current_) << 32);
  publish(record.ticket, current_.ticket);
  publish(shared_->current.ticket, 0);
  __builtin_prefetch(&record + 1, 1);  // of the next call; behind the last one there is no harm
  if (waited_ != 0) [[unlikely]] {
    waited_ = longest_ = 0;
    longest_peer_ = -1;
  }
  if (current_.ended > recorder_.next_point_.load(std::memory_order_relaxed)) [[unlikely]]
    recorder_.note_time();
}

}  // namespace ccom
