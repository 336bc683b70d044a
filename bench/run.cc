// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/explain.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/tune.h"

namespace ccom::bench {
namespace {

using launch::Comm;
using launch::ExitCode;
using launch::failure;
using launch::Outcome;
using launch::outcome_of;
using launch::Place;

struct StreamDeleter {
  void operator()(ccomStream_t stream) const { ccomStreamDestroy(stream); }
};
using Stream = std::unique_ptr<ccomStream, StreamDeleter>;

class Bench {
 public:
  Bench(const Options& options, Place place, ccomComm_t control)
      : options_(options),
        place_(place),
        control_(control),
        range_(range_of(options, place.ranks)),
        report_(options, place.rank) {}

  Outcome run() {
    CCOM_LAUNCH_TRY(prepare());
    CCOM_LAUNCH_TRY(options_.algorithm == "all" ? run_every_algorithm()
                                                : with_algorithm(options_.algorithm, options_.collectives));
    report_.foot(wrong_);
    const Outcome written = report_.close();
    if (!written.ok()) return agreed(written);
    if (!done_something_) return agreed(failure(ExitCode::Usage, "none of the requested cases is supported here"));
    if (wrong_ > 0) return agreed(failure(ExitCode::WrongData, "%" PRIu64 " wrong values", wrong_));
    if (too_slow_ > 0) return agreed(failure(ExitCode::TooSlow, "%" PRIu64 " rows below --min-busbw", too_slow_));
    return {};
  }

 private:
  // An outcome common to all ranks: one of them reports it.
  Outcome agreed(Outcome outcome) const {
    if (place_.rank != 0) outcome.text.clear();
    outcome.everywhere = true;
    return outcome;
  }

  Outcome prepare() {
    if (options_.root && *options_.root >= place_.ranks) {
      return agreed(failure(ExitCode::Usage, "-r %d: there are %d ranks", *options_.root, place_.ranks));
    }
    for (Collective collective : options_.collectives) rows_ += cases_of(collective, place_.ranks, range_).size();
    if (rows_ == 0) return agreed(failure(ExitCode::Usage, "no given operator is valid for a given type"));
    ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
    CCOM_LAUNCH_TRY(outcome_of(ccomCommGetInfo(control_, &info), control_, "query the communicator"));
    ranks_on_machine_ = options_.hosts > 0 ? place_.ranks : std::max(1, info.localNRanks);
    return report_.open();
  }

  // These v-forms are messages, always.
  static bool has_choice(Collective collective) {
    return !is_v(collective) || collective == Collective::AllGatherV || collective == Collective::ReduceScatterV;
  }

  // The valid algorithms for any size of a collective, in ccom's order.
  Outcome run_every_algorithm() {
    std::vector<std::pair<Collective, std::string>> runs;
    {
      Comm plain;
      CCOM_LAUNCH_TRY(make_sibling(measured_config(options_, place_.ranks, ""), place_, control_, &plain));
      for (Collective collective : options_.collectives) {
        for (const Case& what : cases_of(collective, place_.ranks, range_)) {
          Explanation explanation;
          CCOM_LAUNCH_TRY(explain(plain.get(), what, &explanation));
          for (const std::string& name : legal_algorithms(explanation.text)) {
            const std::pair run(collective, has_choice(collective) ? name : "");
            if (std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
          }
        }
      }
    }
    if (runs.empty()) return agreed(failure(ExitCode::Usage, "--algo all: ccom lists no valid algorithm"));
    rows_ = 0;
    for (const auto& [collective, name] : runs) rows_ += cases_of(collective, place_.ranks, range_).size();
    for (const auto& [collective, name] : runs) {
      const std::string plain(bench::name_of(plain_of(collective)));
      CCOM_LAUNCH_TRY(with_algorithm(name.empty() ? "" : plain + ":" + name, {collective}));
    }
    return {};
  }

  Outcome with_algorithm(const std::string& algorithm, const std::vector<Collective>& collectives) {
    Comm comm;
    CCOM_LAUNCH_TRY(make_sibling(measured_config(options_, place_.ranks, algorithm), place_, control_, &comm));
    Outcome outcome = on_comm(comm.get(), collectives);
    // Peers may be waiting in a call on this communicator that this rank will never make.
    if (!outcome.ok() && !outcome.everywhere) ccomCommAbort(comm.get());
    return outcome;
  }

  Outcome on_comm(ccomComm_t comm, const std::vector<Collective>& collectives) {
    ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
    CCOM_LAUNCH_TRY(outcome_of(ccomCommGetInfo(comm, &info), comm, "query the communicator"));
    report_.header(info);
    Stream stream;
    if (options_.stream) {
      ccomStream_t created = nullptr;
      CCOM_LAUNCH_TRY(outcome_of(ccomStreamCreate(&created), comm, "create a stream"));
      stream.reset(created);
    }
    const Rig rig{.options = options_, .place = place_, .control = control_, .comm = comm, .stream = stream.get()};
    for (Collective collective : collectives) {
      for (const Case& what : cases_of(collective, place_.ranks, range_)) CCOM_LAUNCH_TRY(one_case(rig, what));
    }
    if (options_.links) CCOM_LAUNCH_TRY(show_links(comm));
    // No rank leaves, which closes connections, while others still work.
    return outcome_of(ccomBarrier(control_, nullptr), control_, "barrier at the end");
  }

  // ccom is not asked about operators: an ordered one may take another algorithm.
  static std::string algorithm_of(const Case& what, const Explanation& explanation) {
    return what.reduction == Reduction::UserOrdered ? "-" : chosen_algorithm(explanation.text);
  }

  Outcome one_case(const Rig& rig, const Case& what) {
    Explanation explanation;
    CCOM_LAUNCH_TRY(explain(rig.comm, what, &explanation));
    if (!explanation.supported) {
      report_.skipped(what, explanation.text);
      return {};
    }
    done_something_ = true;
    if (options_.explain) {
      report_.explanation(what, explanation.text);
      return {};
    }
    ++row_;
    report_.progress(std::to_string(row_) + "/" + std::to_string(rows_) + " " + text_of(what));
    if (!buffers_.fits(what)) CCOM_LAUNCH_TRY(make_room(what));
    Measurement measurement;
    CCOM_LAUNCH_TRY(measure(rig, what, buffers_, &measurement));
    const RowResult result = row_result(what, std::move(measurement), algorithm_of(what, explanation));
    report_.row(result);
    wrong_ += result.wrong;
    if (options_.min_busbw > 0 && result.busbw < options_.min_busbw && what.collective != Collective::Barrier)
      ++too_slow_;
    return {};
  }

  // All ranks give up together, so that none waits for another.
  Outcome make_room(const Case& what) {
    buffers_.release();
    const size_t needed =
        Buffers::bytes_needed(what, calls_together(options_)) * static_cast<size_t>(ranks_on_machine_);
    const size_t available = available_memory();
    uint64_t lacking = needed > available ? 1 : 0;
    CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&lacking, &lacking, 1, ccomUint64, ccomMax, control_, nullptr), control_,
                               "agree on the memory"));
    if (lacking == 0) return buffers_.allocate(what, options_);
    return agreed(
        failure(ExitCode::Usage,
                "%s: %d ranks on this machine need %.1f GiB for buffers, %.1f GiB are free; choose a smaller -e",
                text_of(what).c_str(), ranks_on_machine_, static_cast<double>(needed) / (1 << 30),
                static_cast<double>(available) / (1 << 30)));
  }

  Outcome show_links(ccomComm_t comm) {
    const auto ranks = static_cast<size_t>(place_.ranks);
    std::vector<uint64_t> own(ranks);
    std::vector<uint64_t> all(ranks * ranks);
    for (int peer = 0; peer < place_.ranks; ++peer) {
      CCOM_LAUNCH_TRY(
          outcome_of(ccomCommGetBytesSent(comm, peer, &own[static_cast<size_t>(peer)]), comm, "query sent bytes"));
    }
    CCOM_LAUNCH_TRY(outcome_of(ccomGather(own.data(), all.data(), ranks, ccomUint64, 0, control_, nullptr), control_,
                               "collect sent bytes"));
    report_.links(all, place_.ranks);
    return {};
  }

  const Options& options_;
  const Place place_;
  const ccomComm_t control_;
  const Range range_;
  Report report_;
  Buffers buffers_;
  int ranks_on_machine_ = 1;
  size_t rows_ = 0;
  size_t row_ = 0;
  bool done_something_ = false;
  uint64_t wrong_ = 0;
  uint64_t too_slow_ = 0;
};

}  // namespace

Range range_of(const Options& options, int ranks) {
  Range range;
  range.sizes = options.sizes;
  range.types = options.types;
  range.reductions = options.reductions;
  range.skew = options.skew;
  range.roots.resize(static_cast<size_t>(ranks));
  std::iota(range.roots.begin(), range.roots.end(), 0);
  if (options.root) range.roots = {*options.root};
  if (options.out_of_place || options.explain) range.in_place.push_back(false);
  if (options.in_place && !options.explain)
    range.in_place.push_back(true);  // Explained once: both places run the same plan.
  return range;
}

launch::SessionConfig measured_config(const Options& options, int ranks, const std::string& algorithm) {
  launch::SessionConfig config = control_config(options, ranks);
  const auto given = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  config.common.commName = "measured";
  config.common.transport = given(options.transport);
  config.common.topology = given(options.topology);
  config.common.algorithm = given(algorithm);
  return config;
}

launch::SessionConfig control_config(const Options& options, int ranks) {
  launch::SessionConfig config;
  config.common.commName = "control";
  // The library's own timeout, which names stragglers, comes before the one of --timeout.
  const auto limit_ms = static_cast<int64_t>(options.timeout_seconds * 900);
  if (limit_ms < 300'000) config.common.timeoutMs = std::max<int64_t>(limit_ms, 100);
  if (options.hosts > 0) {
    const int64_t hosts = options.hosts;
    config.host_id = [hosts, ranks](int rank) { return "host" + std::to_string(rank * hosts / ranks); };
  }
  return config;
}

Outcome run_rank(const Options& options, Place place, ccomComm_t control) {
  if (!options.tune.empty()) return tune(options, place, control);
  return Bench(options, place, control).run();
}

}  // namespace ccom::bench
