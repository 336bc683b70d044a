// SPDX-License-Identifier: Apache-2.0
#include "trace/differences.h"

#include <algorithm>
#include <tuple>

#include "observe/rank_activity.h"

namespace ccom {
namespace {

using Part = ComparedCall::Part;
using State = ComparedCall::State;

// The last one before that number, or of all.
const RecordedCall* last_before(const RecordedRank& recorded, uint64_t number) {
  const RecordedCall* last = nullptr;
  for (const RecordedCall* call : recorded.calls) {
    if (call->call.number >= number) break;
    last = call;
  }
  return last;
}

bool has_left(const RecordedJob& job, const RecordedGroup& group, const RecordedRank& recorded) {
  return std::ranges::any_of(job.files[recorded.file].communicators, [&](const RecordedCommunicator& communicator) {
    return communicator.number == group.number && communicator.closed_ns.has_value();
  });
}

State state_of(const RecordedCall& call) {
  if (!call.ended_ns) return State::Inside;
  return call.code == Code::Ok ? State::Ended : State::Failed;
}

Part part_of_call(const RecordedJob& job, const RecordedRank& recorded, const RecordedCall& call) {
  Part part;
  part.state = state_of(call);
  part.call = call.call;
  part.site = job.files[recorded.file].texts[call.site];
  part.code = call.code;
  if (part.state != State::Ended) part.waits_for = call.waited_for;
  part.first_begun_ns = part.last_begun_ns = job.time(recorded.file, call.begun_ns);
  const int64_t ended = call.ended_ns ? job.time(recorded.file, *call.ended_ns) : job.last_ns;
  part.longest_ns = std::max<int64_t>(0, ended - part.first_begun_ns);
  return part;
}

// What kept a rank, whose last call of the group is given, from the next one: of the calls from that one on, the last
// that is not over, or has failed.
const RecordedCall* made_instead(const Recording& file, const RecordedCall* last) {
  const RecordedCall* found = nullptr;
  for (const RecordedCall& call : file.calls) {
    const bool is_later = last == nullptr || call.begun_ns >= last->begun_ns;
    if (is_later && state_of(call) != State::Ended) found = &call;
  }
  return found;
}

void add_instead(const RecordedJob& job, const RecordedRank& recorded, const RecordedCall* last, Part& part) {
  const Recording& file = job.files[recorded.file];
  const RecordedCall* const call = made_instead(file, last);
  if (call == nullptr) return;
  const RecordedCommunicator& communicator = file.communicators[call->communicator];
  const Part made = part_of_call(job, recorded, *call);
  part.instead = Part::Instead{.communicator = communicator.number,
                               .name = communicator.name,
                               .call = made.call,
                               .site = made.site,
                               .state = made.state,
                               .code = made.code,
                               .waits_for = made.waits_for};
  part.longest_ns = made.longest_ns;
}

// Of a rank that has not made it.
Part part_without_call(const RecordedJob& job, const RecordedGroup& group, const RecordedRank& recorded,
                       uint64_t number) {
  Part part;
  if (!recorded.calls.empty() && recorded.calls.front()->call.number > number) {
    part.state = State::NotRecorded;
    return part;
  }
  part.state = has_left(job, group, recorded) ? State::Left : State::NotMade;
  const RecordedCall* const last = last_before(recorded, number);
  part.first_begun_ns = part.last_begun_ns = group.opened_ns;
  if (last != nullptr) {
    part.call = last->call;
    part.site = job.files[recorded.file].texts[last->site];
    part.first_begun_ns = part.last_begun_ns = job.time(recorded.file, last->ended_ns.value_or(last->begun_ns));
  }
  part.longest_ns = std::max<int64_t>(0, job.last_ns - part.first_begun_ns);
  add_instead(job, recorded, last, part);
  return part;
}

// A process that records notes several times a second that it runs.
void add_silence(const RecordedJob& job, const RecordedRank& recorded, Part& part) {
  if (part.state != State::Inside && part.state != State::NotMade) return;
  part.silent_ns = std::max<int64_t>(0, job.last_ns - job.time(recorded.file, job.files[recorded.file].last_ns));
  part.is_silent = static_cast<double>(part.silent_ns) >= kSilentSeconds * 1e9;
}

bool go_alike(const Part& a, const Part& b) {
  return std::tie(a.state, a.call, a.site, a.code, a.waits_for, a.instead, a.is_silent) ==
         std::tie(b.state, b.call, b.site, b.code, b.waits_for, b.instead, b.is_silent);
}

bool is_call(State state) { return state == State::Ended || state == State::Failed || state == State::Inside; }

bool differ(const std::vector<Part>& parts) {
  const Part* made = nullptr;
  bool is_missing = false;
  for (const Part& part : parts) {
    is_missing |= part.state == State::NotMade || part.state == State::Left;
    if (!is_call(part.state)) continue;
    if (made != nullptr && made->call != part.call) return true;
    made = &part;
  }
  return made != nullptr && is_missing;
}

bool differs_at(const RecordedGroup& group, uint64_t number) {
  const RecordedCall* made = nullptr;
  bool is_missing = false;
  for (const auto& [rank, recorded] : group.ranks) {
    const RecordedCall* const call = group.find(rank, number);
    if (call == nullptr) {
      is_missing |= recorded.calls.empty() || recorded.calls.front()->call.number < number;
    } else if (made != nullptr && made->call != call->call) {
      return true;
    } else {
      made = call;
    }
  }
  return made != nullptr && is_missing;
}

}  // namespace

std::optional<uint64_t> first_difference(const RecordedGroup& group) {
  const std::vector<uint64_t> numbers = group.numbers();
  const auto found = std::ranges::find_if(numbers, [&](uint64_t number) { return differs_at(group, number); });
  return found == numbers.end() ? std::nullopt : std::optional(*found);
}

ComparedCall compare_call(const RecordedJob& job, const RecordedGroup& group, uint64_t number) {
  ComparedCall compared;
  compared.number = number;
  for (Rank rank = 0; rank < group.nranks; ++rank) {
    const auto recorded = group.ranks.find(rank);
    const RecordedCall* const call = group.find(rank, number);
    Part part;
    part.state = State::NotRecorded;
    if (call != nullptr)
      part = part_of_call(job, recorded->second, *call);
    else if (recorded != group.ranks.end())
      part = part_without_call(job, group, recorded->second, number);
    if (recorded != group.ranks.end()) add_silence(job, recorded->second, part);
    const auto alike = std::ranges::find_if(compared.parts, [&](const Part& other) { return go_alike(other, part); });
    Part& into = alike == compared.parts.end() ? compared.parts.emplace_back(std::move(part)) : *alike;
    if (alike != compared.parts.end()) {
      into.first_begun_ns = std::min(into.first_begun_ns, part.first_begun_ns);
      into.last_begun_ns = std::max(into.last_begun_ns, part.last_begun_ns);
      into.longest_ns = std::max(into.longest_ns, part.longest_ns);
      into.silent_ns = std::max(into.silent_ns, part.silent_ns);
    }
    into.ranks.push_back(rank);
  }
  std::ranges::stable_sort(compared.parts, std::greater<>(), [](const Part& part) { return part.ranks.size(); });
  compared.is_different = differ(compared.parts);
  return compared;
}

std::vector<ComparedCall> last_calls(const RecordedJob& job, const RecordedGroup& group, size_t count) {
  const size_t before = std::min<size_t>(2, std::max<size_t>(count, 1) - 1);  // of the difference
  const std::vector<uint64_t> numbers = group.numbers();
  size_t first = numbers.size() > count ? numbers.size() - count : 0;
  if (const auto difference = first_difference(group)) {
    const auto place = static_cast<size_t>(std::ranges::lower_bound(numbers, *difference) - numbers.begin());
    first = std::min(first, place > before ? place - before : 0);
  }
  std::vector<ComparedCall> calls;
  for (size_t i = first; i < numbers.size() && calls.size() < count; ++i)
    calls.push_back(compare_call(job, group, numbers[i]));
  return calls;
}

}  // namespace ccom
