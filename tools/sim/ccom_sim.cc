// SPDX-License-Identifier: Apache-2.0
//
// ccom-sim: how long a collective takes on a machine that need not be here, by which algorithm, and where the time
// goes. Ends with 0, 3 if the command line or the topology is wrong, 1 if a simulation fails.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <new>

#include "base/collective.h"
#include "base/text.h"
#include "bench/command_line/command_line.h"
#include "planner/plan_file.h"
#include "sim/failure.h"
#include "tools/sim/output.h"
#include "tools/sim/progress.h"
#include "tools/sim/replay_command.h"
#include "tools/sim/trace.h"

namespace {

using namespace ccom;
using namespace ccom::simtool;

constexpr int kFailed = 1;
constexpr int kConfigError = 3;

struct Request {
  std::string topology;
  std::string collective = "allreduce";
  std::vector<uint64_t> bytes = {1 << 20};
  std::string algorithm;
  std::vector<std::string> slow, late, dead;
  std::vector<Rank> traced;
  std::string trace_file, heat_file, plan_file, written_file, tuning_file;
  std::string reach = "staged", determinism = "shape", sharing = "turns";
  double noise_us = 0, late_us = 0;
  size_t seed = 1, runs = 20;
  size_t busiest = 0, windows = 0, streams = 0;
  bool json = false, no_fold = false, tiles = false;
};

int fail(const Status& status, int code) {
  std::fprintf(stderr, "ccom-sim: %s\n", status.text().c_str());
  if (!status.cure().empty()) std::fprintf(stderr, "%s\n", status.cure().c_str());
  return code;
}

// "17:250" -> 17 and 250.
Result<std::pair<uint32_t, double>> pair_from(const std::string& text, const char* what) {
  char* end = nullptr;
  const unsigned long first = std::strtoul(text.c_str(), &end, 10);
  if (end != text.c_str() && *end == ':') {
    char* last = nullptr;
    const double second = std::strtod(end + 1, &last);
    if (last != end + 1 && *last == '\0' && second >= 0) return std::pair(static_cast<uint32_t>(first), second);
  }
  return error(Code::ConfigError, "\"%s\" is not %s", text.c_str(), what);
}

Result<Rank> rank_of(const Topology& topology, uint32_t number) {
  if (number < static_cast<uint32_t>(topology.nranks())) return static_cast<Rank>(number);
  return error(Code::ConfigError, "there is no rank %u among %d", number, topology.nranks());
}

Result<Faults> faults_from(const Request& request, const Topology& topology) {
  Faults faults;
  const uint32_t wires = Wires(topology).count();
  for (const std::string& text : request.slow) {
    CCOM_TRY_ASSIGN(const auto slow, pair_from(text, "WIRE:FACTOR"));
    if (slow.first >= wires || slow.second <= 0) {
      return error(Code::ConfigError, "\"%s\": there are wires 0 to %u, and a factor is above 0", text.c_str(),
                   wires - 1);
    }
    faults.slow.push_back({slow.first, slow.second});
  }
  for (const std::string& text : request.late) {
    CCOM_TRY_ASSIGN(const auto late, pair_from(text, "RANK:MICROSECONDS"));
    CCOM_TRY_ASSIGN(const Rank rank, rank_of(topology, late.first));
    faults.stragglers.push_back({rank, late.second * 1e3});
  }
  for (const std::string& text : request.dead) {
    CCOM_TRY_ASSIGN(const auto dead, pair_from(text, "RANK:MICROSECONDS"));
    CCOM_TRY_ASSIGN(const Rank rank, rank_of(topology, dead.first));
    faults.deaths.push_back({rank, dead.second * 1e3});
  }
  return faults;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

Status write_pictures(const Request& request, const Topology& topology, const Outcome& outcome) {
  if (!request.trace_file.empty() &&
      !write_file(request.trace_file, chrome_trace(topology, outcome.program, outcome.report))) {
    return error(Code::SystemError, "cannot write %s", request.trace_file.c_str());
  }
  const std::string title = text_of(outcome.what) + ", " + outcome.program.algorithm;
  if (!request.heat_file.empty() && !write_file(request.heat_file, heat_map(topology, outcome.report, title, 256))) {
    return error(Code::SystemError, "cannot write %s", request.heat_file.c_str());
  }
  return Status::ok();
}

// What the command line and the files that it names amount to.
struct Machine {
  Topology topology;
  Faults faults;
  Reach reach;
  std::vector<PlanEntry> plans;  // of --plan
};

Result<Machine> machine_from(const Request& request) {
  Machine machine;
  CCOM_TRY_ASSIGN(machine.topology, make_topology(request.topology));
  if (!request.tuning_file.empty()) {
    CCOM_TRY_ASSIGN(const Calibration measured, read_calibration(request.tuning_file));
    calibrate(machine.topology, measured);
  }
  CCOM_TRY_ASSIGN(machine.faults, faults_from(request, machine.topology));
  if (request.reach != "staged") machine.reach = {.input = true, .output = request.reach == "mapped"};
  if (!request.plan_file.empty()) {
    CCOM_TRY_ASSIGN(machine.plans, read_plan_file(request.plan_file));
  }
  return machine;
}

SimOptions options_for(const Request& request, const Machine& machine) {
  SimOptions options;
  options.reach = machine.reach;
  options.faults = machine.faults;
  if (request.sharing == "fair") options.sharing = Sharing::Fair;
  options.noise = {request.noise_us * 1e3, request.late_us * 1e3, request.seed};
  options.keep_intervals = !request.heat_file.empty();
  if (!request.trace_file.empty()) options.traced_ranks = request.traced;
  return options;
}

Status show(const Request& request, const Machine& machine, const Outcome& outcome) {
  const Topology& topology = machine.topology;
  if (request.json) {
    std::fputs(to_json(topology, outcome).c_str(), stdout);
  } else {
    std::fputs((table_row(topology, outcome) + noise_line(outcome) + stage_table(outcome)).c_str(), stdout);
    if (request.busiest > 0) std::fputs(wire_table(topology, outcome, request.busiest).c_str(), stdout);
  }
  for (const auto& death : machine.faults.deaths) {
    std::fputs(to_text(topology, death, survive(topology, death), outcome.report).c_str(), stdout);
  }
  std::fflush(stdout);
  return write_pictures(request, topology, outcome);
}

// Cases of one size: by the algorithms that are asked for, then by the program of --plan. Returns the planner's choice.
Result<Program> run_size(const Request& request, const Machine& machine, Case what, Progress& progress) {
  std::vector<std::string> names{request.algorithm};
  if (request.algorithm == "all") {
    CCOM_TRY_ASSIGN(names, legal_algorithms(machine.topology, what));
  }
  Program kept;
  progress.expect(names.size() - 1);
  for (const std::string& name : names) {
    what.algorithm = name;
    progress.begin(text_of(what) + (name.empty() ? "" : ", " + name));
    CCOM_TRY_ASSIGN(Outcome outcome,
                    simulate_case(machine.topology, what, options_for(request, machine), !request.no_fold));
    progress.end();
    progress.clear();
    CCOM_TRY(show(request, machine, outcome));
    if (outcome.chosen || names.size() == 1) kept = std::move(outcome.program);
  }
  if (machine.plans.empty()) return kept;
  CCOM_TRY_ASSIGN(const std::optional<Outcome> given, simulate_given(machine.topology, what, machine.plans,
                                                                     options_for(request, machine), !request.no_fold));
  if (given) CCOM_TRY(show(request, machine, *given));
  return kept;
}

// Each program serves the sizes after the one before, up to its own; the last one all that follow.
Status write_plans(const Request& request, const std::map<uint64_t, Program>& programs) {
  std::vector<PlanEntry> entries;
  size_t from = 0;
  for (const auto& [bytes, program] : programs) {
    entries.push_back({program, from, bytes});
    from = bytes + 1;
  }
  entries.back().to_bytes = SIZE_MAX;
  if (write_file(request.written_file, to_json(entries))) return {};
  return error(Code::SystemError, "cannot write %s", request.written_file.c_str());
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  names.reserve(kCollectiveTraits.size());
  for (const CollectiveTraits& traits : kCollectiveTraits) names.emplace_back(name_of(traits.collective));
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

int run(const Request& request) {
  const auto machine = machine_from(request);
  if (!machine) return fail(machine.error(), kConfigError);
  const auto collective = collective_from(request.collective);
  if (!collective) {
    return fail(error(Code::ConfigError, "there is no collective \"%s\"; there are %s", request.collective.c_str(),
                      joined(collective_names()).c_str()),
                kConfigError);
  }
  if (!request.json) std::fputs(table_head().c_str(), stdout);
  const SumOrder order = request.determinism == "full" ? SumOrder::Canonical : SumOrder::Any;
  std::map<uint64_t, Program> programs;
  Progress progress(::isatty(STDERR_FILENO) == 1 ? std::chrono::seconds(1) : std::chrono::seconds(10));
  progress.expect(request.bytes.size());
  for (const uint64_t bytes : request.bytes) {
    const auto program = run_size(request, *machine,
                                  {*collective, bytes, "", request.tiles, order, static_cast<int>(request.windows),
                                   static_cast<int>(request.streams), static_cast<int>(request.runs)},
                                  progress);
    if (!program) return fail(program.error(), program.error().code() == Code::ConfigError ? kConfigError : kFailed);
    programs[bytes] = *program;
  }
  if (request.written_file.empty()) return 0;
  const Status written = write_plans(request, programs);
  return written.is_ok() ? 0 : fail(written, kFailed);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "replay") return run_replay_command({argv + 2, argv + argc});
  Request request;
  CommandLine line("ccom-sim", "Simulates collectives on a machine that need not be here.",
                   "ccom-sim replay FOLDER does the same with the calls that a job recorded: ccom-sim replay --help");
  line.option("topology", request.topology,
              "A fabric as ccom-topo names them, FABRIC/RANKS_PER_DEVICE, host:RANKS, HOSTS*MACHINE, MACHINE+MACHINE, "
              "or a JSON file")
      .offers(preset_names())
      .file()
      .required();
  line.option("collective", request.collective, "allreduce (default), allgather, reduce_scatter, ...")
      .offers(collective_names());
  line.option("-b,--bytes", request.bytes, "Sizes of the whole data, as 8 1M 1G").size();
  line.option("-a,--algorithm", request.algorithm, "One algorithm, or all that are possible");
  line.option("--reach", request.reach, "What ranks of a host reach of each other's buffers (default: staged, nothing)")
      .one_of({"staged", "readable", "mapped"});
  line.option("--determinism", request.determinism, "Of sums of floating types, as CCOM_DETERMINISM (default: shape)")
      .one_of({"shape", "full"});
  line.option("--plan", request.plan_file, "Simulate the programs of this plan file too").file();
  line.option("--write-plan", request.written_file, "Write the chosen programs, as CCOM_PLAN reads them").file();
  line.option("--tuning", request.tuning_file, "Measured speeds, from ccom-bench --tune").file();
  line.option("--sharing", request.sharing, "How messages share a wire: in turns (default), or fairly, all at once")
      .one_of({"turns", "fair"});
  line.option("--noise", request.noise_us,
              "Mean microseconds, exponentially distributed, added to each message's start and end");
  line.option("--lateness", request.late_us, "Mean microseconds, exponentially distributed, that ranks come later");
  line.option("--seed", request.seed, "Of the first run with --noise and --lateness (default: 1)");
  line.option("--runs", request.runs, "With --noise and --lateness, beside the one without (default: 20)");
  line.option("--slow", request.slow, "WIRE:FACTOR, a wire with that share of its bandwidth; see --wires");
  line.option("--late", request.late, "RANK:MICROSECONDS, a rank that comes later");
  line.option("--dead", request.dead, "RANK:MICROSECONDS, a rank that dies then");
  line.option("--wires", request.busiest, "Print that many of the busiest wires");
  line.option("--trace", request.trace_file, "Write a timeline for chrome://tracing of --ranks").file();
  line.option("--ranks", request.traced, "Ranks of the timeline");
  line.option("--heat-map", request.heat_file, "Write an SVG of wires over time").file();
  line.option(
      "--windows", request.windows,
      "Into how many parts, one after another, algorithms in levels cut the data (default: as the planner chooses)");
  line.option("--streams", request.streams,
              "That algorithms on tori use at most, each by one link at a time (default: all)");
  line.flag("--json", request.json, "One line of JSON per case");
  line.flag("--no-fold", request.no_fold, "Simulate every host, even if one could stand for all");
  line.flag("--tiles", request.tiles, "Messages of all ranks in tiles too, where production has them");
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;
  try {
    return run(request);
  } catch (const std::bad_alloc&) {
    return fail(error(Code::OutOfMemory, "simulate on %s: the plans do not fit into memory", request.topology.c_str())
                    .with_cure("Simulate fewer ranks, or an algorithm with fewer messages."),
                kFailed);
  }
}
