// SPDX-License-Identifier: Apache-2.0
//
// ccom-bench-waiting: the slowdown of a computing rank by a waiting one.
//
// Rank 1 computes for a fixed number of rounds, alternately without a waiter (rank 0 sleeps in the kernel, outside
// ccom) and with another thread waiting in an allreduce: rank 0 on the same core, rank 0 on another core, or the thread
// of rank 1's own stream on the same core. The slowdown is the median of the ratios of adjacent runs, so that longer
// disturbances affect both. The waiter's CPU time gives the same result without noise: CPU time it uses on the same
// core is lost to the computation.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/command_line/command_line.h"
#include "bench/compute.h"
#include "bench/cores.h"
#include "bench/launch/processes.h"
#include "bench/launch/session.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

using launch::ExitCode;
using launch::failure;
using launch::Outcome;
using launch::outcome_of;

struct Settings {
  double milliseconds = 300;
  int repeats = 9;
  std::string scene;  // Of a child.
};

constexpr std::array<const char*, 3> kScenes = {"one-core", "two-cores", "own-stream"};

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void sleep_for(double seconds) {
  const double whole = std::floor(seconds);
  timespec span{};
  span.tv_sec = static_cast<time_t>(whole);
  span.tv_nsec = static_cast<long>(1e9 * (seconds - whole));
  ::nanosleep(&span, nullptr);
}

Outcome pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return failure(ExitCode::Usage, "cannot run on core %d alone", core);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return percentile(values, 0.5);
}

class Scene {
 public:
  Scene(const Settings& settings, launch::Place place, ccomComm_t comm)
      : settings_(settings), place_(place), comm_(comm) {}
  ~Scene() {
    if (stream_ != nullptr) ccomStreamDestroy(stream_);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Outcome run() {
    if (settings_.scene == "own-stream" && computes())
      CCOM_LAUNCH_TRY(outcome_of(ccomStreamCreate(&stream_), comm_, "create a stream"));
    if (computes()) {
      compute_.calibrate();
      rounds_ = compute_.rounds_for(settings_.milliseconds / 1000);
    }
    std::vector<double> alone, ratios, waiter;
    for (int i = 0; i < settings_.repeats; ++i) {
      double without = 0, with = 0, busy = 0;
      for (const bool waits : {i % 2 == 0, i % 2 != 0}) {
        CCOM_LAUNCH_TRY(waits ? with_waiter(&with, &busy) : without_waiter(&without));
      }
      alone.push_back(1000 * without);
      ratios.push_back(without > 0 ? with / without - 1 : 0);
      waiter.push_back(with > 0 ? busy / with : 0);
    }
    if (!computes()) return {};
    std::printf("%10s %10.2f %+11.2f %+8.2f %+8.2f %12.3f\n", settings_.scene.c_str(), median(alone),
                100 * median(ratios), 100 * std::ranges::min(ratios), 100 * std::ranges::max(ratios),
                100 * median(waiter));
    std::fflush(stdout);
    return {};
  }

 private:
  bool computes() const { return place_.rank == 1; }

  double timed_compute() {
    const double begin = seconds_of(CLOCK_MONOTONIC);
    compute_.run(rounds_);
    return seconds_of(CLOCK_MONOTONIC) - begin;
  }

  Outcome barrier() { return outcome_of(ccomBarrier(comm_, nullptr), comm_, "barrier"); }

  Outcome sum(double* value, ccomStream_t stream) {
    return outcome_of(ccomAllReduce(value, value, 1, ccomFloat64, ccomSum, comm_, stream), comm_, "allreduce");
  }

  // 50 % longer than the computation, so it does not end earlier.
  void sleep() const { sleep_for(1.5 * settings_.milliseconds / 1000); }

  Outcome without_waiter(double* seconds) {
    CCOM_LAUNCH_TRY(barrier());
    if (computes())
      *seconds = timed_compute();
    else
      sleep();
    return barrier();
  }

  // busy: the CPU time of the waiting thread.
  Outcome with_waiter(double* seconds, double* busy) {
    CCOM_LAUNCH_TRY(barrier());
    double word = 0;
    if (settings_.scene == "own-stream") {
      if (!computes()) {
        sleep();
        return sum(&word, nullptr);
      }
      CCOM_LAUNCH_TRY(sum(&word, stream_));
      const double others = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
      *seconds = timed_compute();
      *busy = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID) - others;
      return outcome_of(ccomStreamSynchronize(stream_, -1), comm_, "wait for the stream");
    }
    const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    if (computes()) *seconds = timed_compute();
    CCOM_LAUNCH_TRY(sum(&word, nullptr));
    *busy = computes() ? 0 : seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    return sum(busy, nullptr);
  }

  const Settings& settings_;
  const launch::Place place_;
  const ccomComm_t comm_;
  ccomStream_t stream_ = nullptr;
  Compute compute_;
  uint64_t rounds_ = 1;
};

// Ranks that are to share a core are bound before ccom counts the CPUs they may use together, others after.
Outcome run_child(const Settings& settings, launch::Place place) {
  const std::vector<int> cores = usable_cores();
  if (cores.empty()) return failure(ExitCode::Usage, "cannot determine the allowed cores");
  const bool shares = settings.scene == "one-core";
  if (shares) CCOM_LAUNCH_TRY(pin(cores[0]));
  return launch::run_as_process(place, {}, [&](launch::Place self, ccomComm_t comm) -> Outcome {
    if (!shares) CCOM_LAUNCH_TRY(pin(cores[static_cast<size_t>(self.rank) % cores.size()]));
    return Scene(settings, self, comm).run();
  });
}

int exit_with(const Outcome& outcome) {
  if (!outcome.ok()) std::fprintf(stderr, "ccom-bench-waiting: %s\n", outcome.text.c_str());
  return static_cast<int>(outcome.code);
}

int run_scenes(const Settings& settings, const std::vector<std::string>& arguments) {
  std::printf("# rank 1 computes %g ms; %d repeats; slowdown while another thread waits, and the waiter's CPU time\n",
              settings.milliseconds, settings.repeats);
  std::printf("#%9s %10s %11s %8s %8s %12s\n", "scene", "alone ms", "slowdown %", "min", "max", "waiter cpu %");
  std::fflush(stdout);
  for (const std::string scene : kScenes) {
    if (scene != "one-core" && usable_cores().size() < 2) continue;
    std::vector<std::string> child = arguments;
    child.insert(child.end(), {"--scene", scene});
    const int code = launch::run_processes({.arguments = std::move(child), .ranks = 2});
    if (code != 0) return code;
  }
  return 0;
}

int run(int argc, char** argv) {
  Settings settings;
  ccom::CommandLine line("ccom-bench-waiting", "Measures the slowdown of a computing rank by a waiting one.");
  line.option("--ms", settings.milliseconds, "How long a computation takes").positive();
  line.option("-n,--repeats", settings.repeats, "Computations of each kind").range(1, 1000);
  line.option("--scene", settings.scene, "").hidden();
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;
  if (settings.scene.empty()) return run_scenes(settings, {argv, argv + argc});
  std::optional<launch::Place> place;
  if (const Outcome launched = launch::launched_place(&place); !launched.ok()) return exit_with(launched);
  if (!place || place->ranks != 2) return exit_with(failure(ExitCode::Usage, "--scene is internal"));
  return exit_with(run_child(settings, *place));
}

}  // namespace
}  // namespace ccom::bench

int main(int argc, char** argv) {
  try {
    return ccom::bench::run(argc, argv);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "ccom-bench-waiting: %s\n", thrown.what());
    return static_cast<int>(ccom::launch::ExitCode::Usage);
  }
}
