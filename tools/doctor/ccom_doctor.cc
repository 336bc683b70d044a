// SPDX-License-Identifier: Apache-2.0
//
// ccom-doctor: diagnoses why the ranks of a job cannot communicate, host by host. See docs/doctor.md.
//
// Exit code 0: no problem (possibly notes); 1: problems; 3: invalid command line or environment.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "bench/command_line/command_line.h"
#include "bench/launch/processes.h"
#include "bench/launch/session.h"
#include "tools/doctor/examination.h"
#include "tools/doctor/print.h"
#include "tools/doctor/providers.h"
#include "tools/doctor/report_json.h"

namespace ccom::doctor {
namespace {

using launch::ExitCode;
using launch::Outcome;

constexpr int kTrouble = 1;

struct Options {
  int ranks = 2;
  bool is_json = false;
  bool skips_speed = false;
  Settings settings;
};

int exit_with(const Outcome& outcome) {
  std::fprintf(stderr, "ccom-doctor: %s\n", outcome.text.c_str());
  return static_cast<int>(outcome.code);
}

// Rank 0 reports for all ranks that joined; a rank that could not join reports for itself.
int run_rank(const Options& options, launch::Place place) {
  const launch::Watchdog watchdog(std::chrono::seconds(options.settings.life_seconds));
  const Report report = examine(place.rank, place.ranks, options.settings);
  const std::vector<Finding> findings = judge(report);
  if (place.rank == 0) {
    std::fputs((options.is_json ? json_report(report, findings) : to_text(report, findings)).c_str(), stdout);
  } else if (!report.ended.empty()) {
    std::fprintf(stderr, "ccom-doctor: rank %d on %s: %s\n", place.rank, report.hosts.front().label.c_str(),
                 report.ended.c_str());
  }
  return worst(findings) == Level::Trouble ? kTrouble : 0;
}

int run(const std::vector<std::string>& arguments) {
  // libinfinipath, which libfabric loads, would otherwise catch signals and call exit(1).
  ::setenv("IPATH_NO_BACKTRACE", "1", 0);
  Options options;
  CommandLine line("ccom-doctor",
                   "Diagnoses why the ranks of a job cannot communicate. Run it like the job: under the same launcher, "
                   "with the same variables.");
  line.option("--np", options.ranks,
              "Ranks to start on this machine (also -np), unless a launcher does; "
              "default 2")
      .range(1, 1024);
  line.flag("--json", options.is_json, "Print JSON on one line");
  line.flag("--no-speed", options.skips_speed, "Test connections only, measure nothing");
  line.option("--wait", options.settings.wait_seconds, "Timeout in seconds for all ranks to join; default 30")
      .range(1, 3600);
  line.option("--timeout", options.settings.life_seconds, "Timeout in seconds of the whole run; default 600")
      .range(1, 86400);
  if (const std::optional<int> code = line.exit_code({arguments.begin() + 1, arguments.end()})) return *code;
  options.settings.measures = !options.skips_speed;
  std::optional<launch::Place> place;
  if (const Outcome launched = launch::launched_place(&place); !launched.ok()) return exit_with(launched);
  if (place) return run_rank(options, *place);
  return launch::run_processes({.arguments = arguments,
                                .ranks = options.ranks,
                                .timeout = std::chrono::seconds(options.settings.life_seconds + 5)});
}

}  // namespace
}  // namespace ccom::doctor

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == ccom::doctor::kListProviders) return ccom::doctor::print_providers();
    return ccom::doctor::run({argv, argv + argc});
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "ccom-doctor: %s\n", thrown.what());
    return static_cast<int>(ccom::launch::ExitCode::Usage);
  }
}
