// SPDX-License-Identifier: Apache-2.0
#include "trace/recorded_job.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/collective.h"

namespace ccom {
namespace {

// Needs something of every rank before it can end on any.
bool meets_all(const RecordedCall& call) {
  const CallKind kind = parts_of(call.call.kind);
  if (kind.collective == Collective::Barrier) return true;
  if (static_cast<size_t>(kind.collective) >= kCollectiveTraits.size() || kind.is_v || call.call.count == 0)
    return false;
  return !is_rooted(kind.collective) && kind.collective != Collective::SendReceive;
}

std::string machine_of(const Recording& file) { return file.machine.empty() ? file.host : file.machine; }

// Of sets that are united step by step: union-find.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t of(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(size_t a, size_t b) { parent_[of(a)] = of(b); }

 private:
  std::vector<size_t> parent_;
};

// Those of all communicators of a file at once: there may be thousands.
std::vector<RecordedRank> ranks_of(const Recording& file, size_t index) {
  std::vector<RecordedRank> ranks(file.communicators.size());
  for (RecordedRank& rank : ranks) rank.file = index;
  for (const RecordedCall& call : file.calls) {
    RecordedRank& rank = ranks[call.communicator];
    (call.call.number == 0 ? rank.transfers : rank.calls).push_back(&call);
  }
  for (RecordedRank& rank : ranks)
    std::ranges::stable_sort(rank.calls, {}, [](const RecordedCall* call) { return call->call.number; });
  return ranks;
}

void put_together(RecordedJob& job) {
  std::map<uint64_t, RecordedGroup> groups;
  for (size_t i = 0; i < job.files.size(); ++i) {
    std::vector<RecordedRank> ranks = ranks_of(job.files[i], i);
    for (size_t c = 0; c < ranks.size(); ++c) {
      const RecordedCommunicator& communicator = job.files[i].communicators[c];
      RecordedGroup& group = groups[communicator.number];
      group.number = communicator.number;
      group.parent = communicator.parent;
      group.nranks = std::max(group.nranks, communicator.nranks);
      if (group.name.empty()) group.name = communicator.name;
      if (group.topology.empty()) group.topology = communicator.topology;
      if (group.costs.empty()) group.costs = communicator.costs;
      if (group.origins.empty()) group.origins = communicator.origins;
      group.ranks.try_emplace(communicator.rank, std::move(ranks[c]));
    }
  }
  for (auto& [number, group] : groups) job.groups.push_back(std::move(group));
}

MachineInCall part_in(const RecordedJob& job, const RecordedGroup& group, const std::string& machine, uint64_t number,
                      bool& is_there) {
  MachineInCall part{INT64_MIN, INT64_MAX};
  is_there = false;
  for (const auto& [rank, recorded] : group.ranks) {
    if (machine_of(job.files[recorded.file]) != machine) continue;
    const RecordedCall* const call = group.find(rank, number);
    if (call == nullptr || !call->ended_ns || call->code != Code::Ok || !meets_all(*call)) continue;
    is_there = true;
    part.last_begun_ns = std::max(part.last_begun_ns, call->begun_ns);
    part.first_ended_ns = std::min(part.first_ended_ns, *call->ended_ns);
  }
  return part;
}

std::vector<SharedCall> shared_calls(const RecordedJob& job, const std::string& reference, const std::string& other) {
  std::vector<SharedCall> calls;
  for (const RecordedGroup& group : job.groups) {
    for (const uint64_t number : group.numbers()) {
      bool here = false, there = false;
      const SharedCall call{part_in(job, group, reference, number, here), part_in(job, group, other, number, there)};
      if (here && there) calls.push_back(call);
    }
  }
  std::ranges::sort(calls, {}, [](const SharedCall& call) { return call.other.last_begun_ns; });
  return calls;
}

void compare_machines(RecordedJob& job) {
  job.clocks.assign(job.files.size(), {});
  const Recording& first = job.files[0];
  std::map<std::string, ClockOffset> known{{machine_of(first), {}}};
  for (size_t i = 0; i < job.files.size(); ++i) {
    const std::string machine = machine_of(job.files[i]);
    if (!known.contains(machine)) {
      const auto measured = compare_clocks(shared_calls(job, machine_of(first), machine));
      ClockOffset by_calendar;
      by_calendar.known[0].offset_ns = job.files[i].realtime_offset_ns - first.realtime_offset_ns;
      by_calendar.is_measured = false;
      known[machine] = measured.value_or(by_calendar);
    }
    job.clocks[i] = known[machine];
  }
}

int64_t calendar_end(const RecordedJob& job) {
  int64_t latest = INT64_MIN;
  for (const Recording& file : job.files) latest = std::max(latest, file.last_ns + file.realtime_offset_ns);
  return latest;
}

void finish(RecordedJob& job) {
  put_together(job);
  compare_machines(job);
  for (RecordedGroup& group : job.groups) {
    group.opened_ns = INT64_MAX;
    for (const auto& [rank, recorded] : group.ranks) {
      for (const RecordedCommunicator& part : job.files[recorded.file].communicators)
        if (part.number == group.number)
          group.opened_ns = std::min(group.opened_ns, job.time(recorded.file, part.opened_ns));
    }
  }
  std::ranges::sort(job.groups, [](const RecordedGroup& a, const RecordedGroup& b) {
    return a.nranks != b.nranks ? a.nranks > b.nranks : a.opened_ns < b.opened_ns;
  });
  job.last_ns = INT64_MIN;
  for (size_t i = 0; i < job.files.size(); ++i) job.last_ns = std::max(job.last_ns, job.time(i, job.files[i].last_ns));
}

}  // namespace

const RecordedCall* RecordedGroup::find(Rank rank, uint64_t wanted) const {
  const auto recorded = ranks.find(rank);
  if (recorded == ranks.end()) return nullptr;
  const auto& calls = recorded->second.calls;
  const auto found = std::ranges::lower_bound(calls, wanted, {}, [](const RecordedCall* c) { return c->call.number; });
  return found == calls.end() || (*found)->call.number != wanted ? nullptr : *found;
}

uint64_t RecordedGroup::last_number() const {
  uint64_t last = 0;
  for (const auto& [rank, recorded] : ranks)
    if (!recorded.calls.empty()) last = std::max(last, recorded.calls.back()->call.number);
  return last;
}

std::vector<uint64_t> RecordedGroup::numbers() const {
  uint64_t first = 0;
  for (const auto& [rank, recorded] : ranks)
    if (!recorded.calls.empty()) first = std::max(first, recorded.calls.front()->call.number);
  std::vector<uint64_t> all;
  for (const auto& [rank, recorded] : ranks) {
    const size_t before = all.size();
    for (const RecordedCall* call : recorded.calls)
      if (call->call.number >= first) all.push_back(call->call.number);
    std::inplace_merge(all.begin(), all.begin() + static_cast<ptrdiff_t>(before), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  return all;
}

Rank RecordedJob::rank_of_file(size_t file) const {
  for (const RecordedGroup& group : groups) {
    for (const auto& [rank, recorded] : group.ranks)
      if (recorded.file == file) return rank;
  }
  return -1;
}

std::vector<RecordedJob> jobs_of(std::vector<Recording> recordings) {
  Sets sets(recordings.size());
  std::map<uint64_t, size_t> by_communicator;
  for (size_t i = 0; i < recordings.size(); ++i) {
    for (const RecordedCommunicator& communicator : recordings[i].communicators) {
      const auto [known, is_new] = by_communicator.try_emplace(communicator.number, i);
      if (!is_new) sets.unite(i, known->second);
    }
  }
  std::map<size_t, RecordedJob> jobs;
  for (size_t i = 0; i < recordings.size(); ++i) {
    if (recordings[i].communicators.empty()) continue;
    jobs[sets.of(i)].files.push_back(std::move(recordings[i]));
  }
  std::vector<RecordedJob> all;
  for (auto& [set, job] : jobs) {
    std::ranges::sort(job.files, {}, [](const Recording& file) { return file.communicators[0].rank; });
    finish(job);
    all.push_back(std::move(job));
  }
  std::ranges::stable_sort(all, std::greater<>(), calendar_end);
  return all;
}

Result<std::vector<RecordedJob>> read_jobs(const std::vector<std::string>& paths, std::vector<std::string>& refused) {
  std::vector<Recording> recordings;
  for (const std::string& path : paths) {
    std::vector<std::string> files;
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) {
      for (const auto& entry : std::filesystem::directory_iterator(path, failure))
        if (entry.path().extension() == ".ccomrec") files.push_back(entry.path());
      std::ranges::sort(files);
      if (files.empty()) refused.push_back(path + ": no *.ccomrec in this folder");
    } else {
      files.push_back(path);
    }
    for (const std::string& file : files) {
      Result<Recording> found = read_recording(file);
      if (found)
        recordings.push_back(*std::move(found));
      else
        refused.push_back(found.error().message());
    }
  }
  std::vector<RecordedJob> jobs = jobs_of(std::move(recordings));
  if (!jobs.empty()) return jobs;
  return error(Code::InvalidArgument, "no recording with a communicator: %s",
               refused.empty() ? "none began before the end" : refused[0].c_str())
      .with_cure("give the folder that CCOM_RECORD names");
}

}  // namespace ccom
