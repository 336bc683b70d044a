// SPDX-License-Identifier: Apache-2.0
//
// ccom-bench: measures and verifies collectives. See README.md.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/explain.h"
#include "bench/launch/processes.h"
#include "bench/launch/session.h"
#include "bench/options.h"
#include "bench/run.h"

namespace ccom::bench {
namespace {

using launch::ExitCode;
using launch::Outcome;

constexpr int kDefaultRanks = 4;
constexpr int kRanksToTune = 2;

std::chrono::milliseconds timeout_of(const Options& options) {
  return std::chrono::milliseconds(static_cast<int64_t>(options.timeout_seconds * 1000));
}

int exit_with(const Outcome& outcome) {
  if (!outcome.text.empty()) std::fprintf(stderr, "ccom-bench: %s\n", outcome.text.c_str());
  return static_cast<int>(outcome.code);
}

// A rank started by a launcher, which may be this program.
int run_launched(const Options& options, launch::Place place) {
  const auto& counts = options.process_counts;
  if (!options.is_child && !counts.empty() && (counts.size() > 1 || counts.front() != place.ranks)) {
    return exit_with(
        launch::failure(ExitCode::Usage, "-np %d, but the launcher has started %d ranks", counts.front(), place.ranks));
  }
  std::unique_ptr<launch::Watchdog> watchdog;
  if (!options.is_child) watchdog = std::make_unique<launch::Watchdog>(timeout_of(options));
  const Outcome outcome =
      launch::run_as_process(place, control_config(options, place.ranks),
                             [&options](launch::Place self, ccomComm_t comm) { return run_rank(options, self, comm); });
  // Ranks that this program has started have one environment, so rank 0 says the same.
  const bool is_told = options.is_child && outcome.of_setting && place.rank > 0;
  if (outcome.text.empty() || is_told) return static_cast<int>(outcome.code);
  return exit_with(launch::failure(outcome.code, "rank %d: %s", place.rank, outcome.text.c_str()));
}

// The only rank of a launcher, as in the shell of `srun --pty bash`, starts the ranks that it is asked for.
bool starts_ranks(const Options& options, launch::Place place) {
  return !options.is_child && place.ranks == 1 && !options.process_counts.empty();
}

int run_threads(const Options& options, int ranks) {
  const launch::Watchdog watchdog(timeout_of(options));
  return exit_with(launch::run_as_threads(
      ranks, control_config(options, ranks),
      [&options](launch::Place self, ccomComm_t comm) { return run_rank(options, self, comm); }));
}

int run_processes(const Options& options, int ranks, std::vector<std::string> arguments) {
  arguments.emplace_back("--child");
  if (options.json_append) arguments.emplace_back("--json-append");
  return launch::run_processes({.arguments = std::move(arguments), .ranks = ranks, .timeout = timeout_of(options)});
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  std::string help;
  const Outcome parsed = parse_options({arguments.begin() + 1, arguments.end()}, &options, &help);
  if (!help.empty()) std::fputs(help.c_str(), stdout);
  if (!parsed.ok() || !help.empty()) return exit_with(parsed);
  if (is_offline(options)) return exit_with(explain_offline(options));
  if (!options.threads) {
    std::optional<launch::Place> place;
    if (const Outcome launched = launch::launched_place(&place); !launched.ok()) return exit_with(launched);
    if (place && !starts_ranks(options, *place)) return run_launched(options, *place);
  }
  if (options.process_counts.empty()) options.process_counts = {options.tune.empty() ? kDefaultRanks : kRanksToTune};
  ExitCode worst = ExitCode::Ok;
  for (int ranks : options.process_counts) {
    const int code = options.threads ? run_threads(options, ranks) : run_processes(options, ranks, arguments);
    options.json_append = true;  // Later runs append to the file that the first one has created.
    worst = launch::more_telling(worst, static_cast<ExitCode>(code));
    if (code >= static_cast<int>(ExitCode::Usage)) return code;
  }
  return static_cast<int>(worst);
}

}  // namespace
}  // namespace ccom::bench

int main(int argc, char** argv) {
  try {
    return ccom::bench::run({argv, argv + argc});
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "ccom-bench: %s\n", thrown.what());
    return static_cast<int>(ccom::launch::ExitCode::Usage);
  }
}
