// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/replay_command.h"

#include <cstdio>
#include <new>

#include "bench/command_line/command_line.h"
#include "tools/sim/replay.h"
#include "tools/sim/replay_text.h"

namespace ccom::simtool {
namespace {

constexpr int kFailed = 1;
constexpr int kConfigError = 3;

struct ReplayRequest {
  std::vector<std::string> paths;
  std::string machine, algorithm, tuning_file;
  size_t ranks = 0, job = 1;
  std::vector<uint64_t> bucket;
  double speed = 1;
  bool uses_measured = false;
  bool json = false;
};

int refuse(const Status& status, int code) {
  std::fprintf(stderr, "ccom-sim replay: %s\n", status.text().c_str());
  return code;
}

// Of so many ranks, host after host as full as the recorded ones.
Result<Topology> with_ranks(Topology topology, size_t ranks) {
  if (ranks == 0 || ranks == topology.ranks.size()) return topology;
  if (ranks < topology.ranks.size()) {
    std::vector<Rank> kept(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) kept[rank] = static_cast<Rank>(rank);
    return part_of(topology, kept);
  }
  return error(Code::ConfigError, "the machine has %zu ranks, not %zu", topology.ranks.size(), ranks)
      .with_cure("name one that has them by --on, as '2*host:8'");
}

// The recorded one, with what is known of it.
Result<ReplayMachine> recorded_machine(const ReplayRequest& request, const RecordedJob& job) {
  ReplayMachine machine;
  CCOM_TRY_ASSIGN(machine.topology, recorded_topology(job));
  if (!request.tuning_file.empty()) return machine;
  CCOM_TRY(use_measured(machine, job));
  if (request.uses_measured) return machine;
  CCOM_TRY_ASSIGN(const Replay recorded, replay_of(job, machine.topology.nranks()));
  CCOM_TRY(fit_costs(recorded, machine));
  return machine;
}

Result<ReplayMachine> machine_of(const ReplayRequest& request, const RecordedJob& job) {
  ReplayMachine machine;
  if (request.machine.empty()) {
    CCOM_TRY_ASSIGN(machine, recorded_machine(request, job));
  } else {
    CCOM_TRY_ASSIGN(machine.topology, make_topology(request.machine));
  }
  const int recorded_ranks = job.groups.front().nranks;
  CCOM_TRY_ASSIGN(machine.topology, with_ranks(std::move(machine.topology), request.ranks));
  machine.is_recorded &= machine.topology.nranks() == recorded_ranks;
  if (!request.tuning_file.empty()) {
    CCOM_TRY_ASSIGN(const Calibration measured, read_calibration(request.tuning_file));
    calibrate(machine.topology, measured);
  }
  if (request.speed != 1) speed_up(machine, request.speed);
  machine.algorithm = request.algorithm;
  return machine;
}

Result<std::string> replay_text(const ReplayRequest& request, const RecordedJob& job) {
  CCOM_TRY_ASSIGN(const ReplayMachine machine, machine_of(request, job));
  CCOM_TRY_ASSIGN(Replay replay, replay_of(job, machine.topology.nranks()));
  if (!request.bucket.empty()) replay = with_buckets(replay, request.bucket[0]);
  ReplayReport report;
  report.what = request.machine.empty() ? "the recorded machine" : request.machine;
  report.replay = replay;
  report.fit = machine.fit;
  CCOM_TRY_ASSIGN(report.replayed, run_replay(replay, machine));
  CCOM_TRY_ASSIGN(report.without_stragglers, run_replay(without_stragglers(replay), machine));
  return request.json ? to_json(report) : to_text(report);
}

int run(const ReplayRequest& request) {
  std::vector<std::string> refused;
  const auto jobs = read_jobs(request.paths, refused);
  for (const std::string& reason : refused) std::fprintf(stderr, "ccom-sim replay: left out: %s\n", reason.c_str());
  if (!jobs) return refuse(jobs.error(), kConfigError);
  if (request.job == 0 || request.job > jobs->size())
    return refuse(error(Code::ConfigError, "there are recordings of %zu jobs", jobs->size()), kConfigError);
  const Result<std::string> text = replay_text(request, (*jobs)[request.job - 1]);
  if (!text) return refuse(text.error(), text.error().code() == Code::ConfigError ? kConfigError : kFailed);
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

int run_replay_command(const std::vector<std::string>& words) {
  ReplayRequest request;
  CommandLine line("ccom-sim replay",
                   "Predicts what recorded calls (CCOM_RECORD) and the times between them take on another machine.");
  line.option("paths", request.paths, "The folder that CCOM_RECORD named, or files of it").file().required();
  line.option("--on", request.machine, "The machine, as of ccom-sim (default: the one that was recorded)")
      .offers(preset_names())
      .file();
  line.option("--ranks", request.ranks, "The first so many ranks of the machine (default: all)").positive();
  line.option("--links-speed", request.speed, "Links, cards and memory so many times as fast").positive();
  line.option("-a,--algo", request.algorithm, "An algorithm, where it is possible (default: as the planner chooses)");
  line.option("--bucket", request.bucket, "Neighbouring allreduces cut anew into calls of so many bytes, as 25M")
      .size();
  line.option("--tuning", request.tuning_file, "Measured speeds, from ccom-bench --tune").file();
  line.flag("--measured", request.uses_measured,
            "On the recorded machine: costs of shared memory as its ranks measured them at their start, not fitted to "
            "the recorded calls");
  line.option("--job", request.job, "Which job, where there are several; 1 ended last (default)").positive();
  line.flag("--json", request.json, "One object in one line");
  if (const std::optional<int> code = line.exit_code(words)) return *code;
  try {
    return run(request);
  } catch (const std::bad_alloc&) {
    return refuse(error(Code::OutOfMemory, "the calls do not fit into memory"), kFailed);
  }
}

}  // namespace ccom::simtool
