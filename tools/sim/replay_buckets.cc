// SPDX-License-Identifier: Apache-2.0
//
// The same gradients in other buckets.
#include <algorithm>

#include "tools/sim/replay_prices.h"

namespace ccom::simtool {
namespace {

bool is_sum_of_vector(const ReplayCall& call) { return parts_of(call.call.kind).collective == Collective::AllReduce; }

// Whether each rank came from the first one straight to the second.
bool are_neighbours(const ReplayCall& first, int64_t place, const ReplayCall& second) {
  return first.group == second.group && first.call.kind == second.call.kind &&
         std::ranges::all_of(second.parts, [&](const ReplayCall::Part& part) { return part.after == place; });
}

double longest_gap(const ReplayCall& call) {
  return std::ranges::max_element(call.parts, {}, &ReplayCall::Part::gap_ns)->gap_ns;
}

// Cuts a run of allreduces: data come in, buckets go out.
class Buckets {
 public:
  Buckets(Replay& out, size_t bucket_bytes) : out_(out), bucket_bytes_(bucket_bytes) {}

  // from: the call, whose parts follow what the run before has become.
  void add(const ReplayCall& from) {
    for (size_t rank = 0; has_begun_ && rank < from.parts.size(); ++rank)
      open_.parts[rank].gap_ns += from.parts[rank].gap_ns;
    if (!has_begun_) open_ = from;
    has_begun_ = true;
    const size_t element = std::max<size_t>(1, size_of(parts_of(from.call.kind).type));
    size_t rest = from.call.count * element;
    while (filled_ + rest >= bucket_bytes_) {
      rest -= bucket_bytes_ - filled_;
      emit(bucket_bytes_ / element);
    }
    filled_ += rest;
  }
  // Returns the place of the last call.
  int64_t flush() {
    const size_t element = std::max<size_t>(1, size_of(parts_of(open_.call.kind).type));
    if (filled_ > 0) emit(std::max<size_t>(1, filled_ / element));
    return static_cast<int64_t>(out_.calls.size()) - 1;
  }

 private:
  void emit(size_t count) {
    open_.call.count = count;
    open_.recorded_ns = 0;
    open_.algorithm.clear();
    out_.calls.push_back(open_);
    const auto place = static_cast<int64_t>(out_.calls.size()) - 1;
    open_.follows = place;
    for (ReplayCall::Part& part : open_.parts) {
      part.after = place;
      part.gap_ns = 0;
    }
    filled_ = 0;
  }

  Replay& out_;
  const size_t bucket_bytes_;
  ReplayCall open_;  // parts and gaps of the bucket that is being filled
  size_t filled_ = 0;
  bool has_begun_ = false;
};

}  // namespace

Replay with_buckets(const Replay& replay, size_t bucket_bytes) {
  constexpr double kLongGap = 8;
  std::vector<double> gaps;
  for (size_t i = 1; i < replay.calls.size(); ++i)
    if (are_neighbours(replay.calls[i - 1], static_cast<int64_t>(i) - 1, replay.calls[i]))
      gaps.push_back(longest_gap(replay.calls[i]));
  const double longest = kLongGap * median_of(std::move(gaps));
  Replay out = replay;
  out.calls.clear();
  std::vector<int64_t> became(replay.calls.size(), -1);  // by call: what its end is now
  const auto now = [&became](int64_t place) { return place < 0 ? place : became[static_cast<size_t>(place)]; };
  for (size_t i = 0; i < replay.calls.size();) {
    size_t end = i + 1;
    while (end < replay.calls.size() && is_sum_of_vector(replay.calls[i]) &&
           are_neighbours(replay.calls[end - 1], static_cast<int64_t>(end) - 1, replay.calls[end]) &&
           longest_gap(replay.calls[end]) <= longest)
      ++end;
    Buckets buckets(out, bucket_bytes);
    for (size_t at = i; at < end; ++at) {
      ReplayCall call = replay.calls[at];
      call.follows = now(call.follows);
      for (ReplayCall::Part& part : call.parts) part.after = at == i ? now(part.after) : -1;
      if (!is_sum_of_vector(call))
        out.calls.push_back(std::move(call));
      else
        buckets.add(call);
    }
    const int64_t last =
        is_sum_of_vector(replay.calls[i]) ? buckets.flush() : static_cast<int64_t>(out.calls.size()) - 1;
    for (; i < end; ++i) became[i] = last;
  }
  return out;
}

}  // namespace ccom::simtool
