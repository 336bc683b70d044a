// SPDX-License-Identifier: Apache-2.0
//
// From recordings to calls that follow one another.
#include <algorithm>
#include <numeric>

#include "tools/sim/replay.h"

namespace ccom::simtool {
namespace {

// Of one communicator, in which all its ranks took part to the end.
struct WholeCall {
  size_t group = 0;
  std::vector<const RecordedCall*> parts;  // by rank
  std::vector<size_t> processes;           // likewise
  int64_t last_come_ns = 0, last_ended_ns = 0;
};

bool can_be_replayed(const RecordedCall& call) {
  const CallKind kind = parts_of(call.call.kind);
  return call.ended_ns && call.code == Code::Ok && static_cast<size_t>(kind.collective) < kCollectiveTraits.size() &&
         kind.collective != Collective::SendReceive && size_of(kind.type) != 0;
}

std::vector<WholeCall> whole_calls(const RecordedJob& job, const RecordedGroup& group, size_t index, size_t& left_out) {
  std::vector<WholeCall> calls;
  if (group.ranks.size() != static_cast<size_t>(group.nranks)) return calls;
  for (const uint64_t number : group.numbers()) {
    WholeCall whole{
        .group = index, .parts = {}, .processes = {}, .last_come_ns = INT64_MIN, .last_ended_ns = INT64_MIN};
    for (const auto& [rank, recorded] : group.ranks) {
      const RecordedCall* const call = group.find(rank, number);
      if (call == nullptr || !can_be_replayed(*call)) break;
      whole.parts.push_back(call);
      whole.processes.push_back(recorded.file);
      whole.last_come_ns = std::max(whole.last_come_ns, job.time(recorded.file, call->begun_ns));
      whole.last_ended_ns = std::max(whole.last_ended_ns, job.time(recorded.file, *call->ended_ns));
    }
    if (whole.parts.size() == group.ranks.size())
      calls.push_back(std::move(whole));
    else
      ++left_out;
  }
  return calls;
}

// The last call of that process that had ended when this one began.
class Ends {
 public:
  explicit Ends(size_t processes) : ends_(processes) {}
  void add(size_t process, int64_t ended_ns, int64_t call) { ends_[process].emplace_back(ended_ns, call); }
  void sort() {
    for (auto& all : ends_) std::ranges::sort(all);
  }
  std::pair<int64_t, int64_t> before(size_t process, int64_t begun_ns, int64_t start_ns, int64_t self) const {
    const auto& all = ends_[process];
    auto after = std::ranges::upper_bound(all, std::pair(begun_ns, INT64_MAX));
    while (after != all.begin()) {
      --after;
      if (after->second < self) return *after;
    }
    return {start_ns, -1};
  }

 private:
  std::vector<std::vector<std::pair<int64_t, int64_t>>> ends_;
};

// The job has as many ranks as the machine.
std::vector<Rank> machine_ranks(const RecordedJob& job, const RecordedGroup& group) {
  const RecordedGroup& widest = job.groups.front();
  if (group.parent == widest.number && !group.origins.empty()) return group.origins;
  std::vector<Rank> ranks;
  for (const auto& [rank, recorded] : group.ranks)
    ranks.push_back(group.nranks == widest.nranks ? rank : job.rank_of_file(recorded.file));
  return ranks;
}

// The same calls on another number of ranks, of communicators of all of them.
void repeat_ranks(Replay& replay, int nranks) {
  for (ReplayCall& call : replay.calls) {
    const std::vector<ReplayCall::Part> recorded = call.parts;
    call.parts.resize(static_cast<size_t>(nranks));
    for (size_t rank = 0; rank < call.parts.size(); ++rank) {
      call.parts[rank] = recorded[rank % recorded.size()];
      call.parts[rank].process = rank;
    }
  }
  replay.processes = static_cast<size_t>(nranks);
  for (Replay::Group& group : replay.groups) {
    group.ranks.resize(replay.processes);
    std::iota(group.ranks.begin(), group.ranks.end(), 0);
  }
}

}  // namespace

Result<Replay> replay_of(const RecordedJob& job, int nranks) {
  const RecordedGroup& widest = job.groups.front();
  if (widest.ranks.size() != static_cast<size_t>(widest.nranks))
    return error(Code::InvalidArgument, "there are recordings of %zu of %d ranks", widest.ranks.size(), widest.nranks)
        .with_cure("collect the files of all hosts");
  const bool is_same = nranks == widest.nranks;
  Replay replay;
  replay.processes = std::max(job.files.size(), static_cast<size_t>(widest.nranks));  // ranks may be threads
  std::vector<WholeCall> whole;
  for (const RecordedGroup& group : job.groups) {
    if (!is_same && group.nranks != widest.nranks) {
      replay.left_out += group.last_number();
      continue;
    }
    for (WholeCall& call : whole_calls(job, group, replay.groups.size(), replay.left_out))
      whole.push_back(std::move(call));
    replay.groups.push_back({group.name, machine_ranks(job, group)});
  }
  if (whole.empty()) return error(Code::InvalidArgument, "no call was recorded by all ranks to its end");
  std::ranges::stable_sort(whole, {}, &WholeCall::last_come_ns);
  Ends ends(job.files.size());
  int64_t start = INT64_MAX, end = INT64_MIN;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (size_t rank = 0; rank < whole[i].parts.size(); ++rank) {
      ends.add(whole[i].processes[rank], *whole[i].parts[rank]->ended_ns, static_cast<int64_t>(i));
      start = std::min(start, job.time(whole[i].processes[rank], whole[i].parts[rank]->begun_ns));
    }
    end = std::max(end, whole[i].last_ended_ns);
  }
  ends.sort();
  std::vector<int64_t> last_of_group(replay.groups.size(), -1);
  for (size_t i = 0; i < whole.size(); ++i) {
    ReplayCall call;
    call.group = whole[i].group;
    call.call = whole[i].parts[0]->call;
    const Recording& file = job.files[whole[i].processes[0]];
    call.algorithm = file.texts[whole[i].parts[0]->algorithm];
    call.recorded_ns = static_cast<double>(std::max<int64_t>(1, whole[i].last_ended_ns - whole[i].last_come_ns));
    call.follows = std::exchange(last_of_group[call.group], static_cast<int64_t>(i));
    for (size_t rank = 0; rank < whole[i].parts.size(); ++rank) {
      const size_t process = whole[i].processes[rank];
      const int64_t begun = whole[i].parts[rank]->begun_ns;
      // A process's first call: from when the first process of all began, on the common clock.
      const int64_t own_start = begun - (job.time(process, begun) - start);
      const auto [ended, after] = ends.before(process, begun, own_start, static_cast<int64_t>(i));
      const auto early = static_cast<double>(whole[i].last_come_ns - job.time(process, begun));
      call.parts.push_back({process, after, static_cast<double>(begun - ended), early});
    }
    replay.calls.push_back(std::move(call));
  }
  replay.recorded_ns = static_cast<double>(end - start);
  if (!is_same) repeat_ranks(replay, nranks);
  return replay;
}

Replay without_stragglers(Replay replay) {
  for (ReplayCall& call : replay.calls) {
    std::vector<double> gaps;
    for (const ReplayCall::Part& part : call.parts) gaps.push_back(part.gap_ns);
    // Of an even number the smaller one of the two in the middle: one of two ranks may be the late one.
    const auto middle = gaps.begin() + static_cast<ptrdiff_t>((gaps.size() - 1) / 2);
    std::ranges::nth_element(gaps, middle);
    for (ReplayCall::Part& part : call.parts) part.gap_ns = std::min(part.gap_ns, *middle);
  }
  return replay;
}

}  // namespace ccom::simtool
