// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/explain.h"

namespace ccom::bench {
namespace {

std::string version_text() {
  int code = 0;
  ccomGetVersion(&code);
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

const char* place_of(const Case& what) {
  if (!has_in_place(what.collective)) return "-";
  return what.in_place ? "in" : "out";
}

std::string root_of(const Case& what) { return has_root(what.collective) ? std::to_string(what.root) : "-"; }

// About four significant digits, at most the column's width.
std::string microseconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value < 100 ? "%.2f" : value < 10000 ? "%.1f" : "%.0f", value);
  return text.data();
}

std::string columns_of(const std::optional<Overlap>& overlap) {
  if (!overlap) return "";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), " %9s %9s %7.2f |", microseconds(overlap->compute).c_str(),
                microseconds(overlap->both).c_str(), overlap->hidden);
  return text.data();
}

const char* name_of(Mode mode) { return mode == Mode::Latency ? "latency" : "throughput"; }

}  // namespace

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

int allowed_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

RowResult row_result(const Case& what, Measurement measurement, std::string algorithm) {
  RowResult result{.what = what,
                   .times = summarise(std::move(measurement.seconds)),
                   .overlap = {},
                   .wrong = measurement.wrong,
                   .algorithm = std::move(algorithm)};
  result.algbw = algbw(size_bytes_of(what), result.times.p50);
  result.busbw = result.algbw * busbw_factor(what.collective, what.ranks);
  if (measurement.both_seconds.empty()) return result;
  const double compute = summarise(std::move(measurement.compute_seconds)).p50;
  const double both = summarise(std::move(measurement.both_seconds)).p50;
  result.overlap = Overlap{compute, both, hidden_share(result.times.p50, compute, both)};
  return result;
}

launch::Outcome Report::open() {
  if (!speaks_ || options_.json.empty() || options_.json == "-") return {};
  json_file_.open(options_.json, options_.json_append ? std::ios::app : std::ios::trunc);
  if (json_file_) return {};
  return launch::failure(launch::ExitCode::Usage, "--json %s: %s", options_.json.c_str(), std::strerror(errno));
}

void Report::header(const ccomCommInfo_t& info) {
  if (header_printed_) return;
  header_printed_ = true;
  info_ = info;
  if (!prints_table()) return;
  std::printf("# ccom-bench %s: %d ranks (%s), %d host%s%s, transport %s, topology %s\n", version_text().c_str(),
              info.nranks, options_.threads ? "threads" : "processes", info.nhosts, info.nhosts == 1 ? "" : "s",
              options_.hosts > 0 ? " (emulated)" : "", info.transports, info.topology);
  std::printf("# %s, %d cores allowed; %s mode, %s buffers, %s stream\n", cpu_model().c_str(), allowed_cores(),
              name_of(options_.mode), options_.memory == Memory::Heap ? "heap" : "mapped",
              options_.stream ? "created" : "NULL");
  if (options_.explain) return;
  std::printf(
      "# size: bytes of the larger buffer; count: elements in the call; times: us per call of the slowest rank\n");
  std::printf(
      "# algbw = size / p50 in GB/s (1e9); busbw = algbw * 2(n-1)/n for allreduce, * 1 for broadcast, reduce, "
      "sendrecv, * (n-1)/n for the others\n");
  if (std::ranges::any_of(options_.collectives, is_v))
    std::printf("# v-forms: count is the mean of the parts; skew %s\n", bench::name_of(options_.skew).data());
  if (options_.group > 0)
    std::printf("# times are those of groups of %d calls, by %d\n", options_.group, options_.group);
  if (options_.overlap)
    std::printf(
        "# hidden = (p50 + compute - both) / min(p50, compute): the share of the time that overlapping saves\n");
  std::printf("#%13s %12s %12s %10s %9s %4s %5s | %9s %9s %9s %9s %9s | %8s %8s |%s %6s | %s\n", "op", "size", "count",
              "type", "redop", "root", "place", "us min", "p50", "p95", "p99", "max", "algbw", "busbw",
              options_.overlap ? "   compute      both  hidden |" : "", "#wrong", "algo");
  std::fflush(stdout);
}

void Report::row(const RowResult& result) {
  if (!speaks_) return;
  ++rows_;
  busbw_sum_ += result.busbw;
  progress("");
  json(result);
  if (!prints_table()) return;
  const Case& what = result.what;
  const Times& times = result.times;
  std::printf("%14s %12zu %12zu %10s %9s %4s %5s | %9s %9s %9s %9s %9s | %8.3f %8.3f |%s %6s | %s\n",
              bench::name_of(what.collective).data(), size_bytes_of(what), what.count, bench::name_of(what.type).data(),
              bench::name_of(what.reduction).data(), root_of(what).c_str(), place_of(what),
              microseconds(times.min).c_str(), microseconds(times.p50).c_str(), microseconds(times.p95).c_str(),
              times.p99 ? microseconds(*times.p99).c_str() : "", microseconds(times.max).c_str(), result.algbw,
              result.busbw, columns_of(result.overlap).c_str(),
              options_.check == Check::Off ? "-" : std::to_string(result.wrong).c_str(), result.algorithm.c_str());
  std::fflush(stdout);
}

void Report::json(const RowResult& result) {
  if (options_.json.empty()) return;
  const Case& what = result.what;
  nlohmann::ordered_json object = {
      {"op", bench::name_of(what.collective)},
      {"bytes", size_bytes_of(what)},
      {"count", what.count},
      {"type", bench::name_of(what.type)},
      {"redop", bench::name_of(what.reduction)},
      {"root", what.root},
      {"place", place_of(what)},
      {"ranks", what.ranks},
      {"threads", options_.threads},
      {"hosts", info_.nhosts},
      {"transport", info_.transports},
      {"topology", info_.topology},
      {"algo", result.algorithm},
      {"mode", name_of(options_.mode)},
      {"samples", result.times.samples},
      {"min_us", result.times.min},
      {"p50_us", result.times.p50},
      {"p95_us", result.times.p95},
      {"p99_us", result.times.p99 ? nlohmann::ordered_json(*result.times.p99) : nlohmann::ordered_json()},
      {"max_us", result.times.max},
      {"mean_us", result.times.mean},
      {"algbw", result.algbw},
      {"busbw", result.busbw},
      {"wrong", options_.check == Check::Off ? nlohmann::ordered_json() : nlohmann::ordered_json(result.wrong)},
  };
  if (is_v(what.collective)) object["skew"] = bench::name_of(what.skew);
  if (options_.group > 0) object["group"] = options_.group;
  if (result.overlap) {
    object["compute_us"] = result.overlap->compute;
    object["both_us"] = result.overlap->both;
    object["hidden"] = result.overlap->hidden;
  }
  const std::string line = object.dump();
  if (json_file_.is_open())
    json_file_ << line << std::endl;
  else
    std::printf("%s\n", line.c_str()), std::fflush(stdout);
}

void Report::skipped(const Case& what, const std::string& reason) {
  if (!speaks_ || std::ranges::find(skipped_, what.collective) != skipped_.end()) return;
  skipped_.push_back(what.collective);
  progress("");
  std::fprintf(stderr, "ccom-bench: skipped: %s: %s\n", bench::name_of(what.collective).data(), reason.c_str());
}

void Report::explanation(const Case& what, const std::string& json) {
  if (!speaks_) return;
  progress("");
  if (prints_table()) std::printf("# %s\n%s", text_of(what).c_str(), explanation_table(json).c_str());
  if (json_file_.is_open()) json_file_ << json << std::endl;
  if (options_.json == "-") std::printf("%s\n", json.c_str());
  std::fflush(stdout);
}

void Report::links(const std::vector<uint64_t>& bytes, int ranks) {
  if (!prints_table()) return;
  std::printf("# payload bytes sent, from (row) to (column)\n#%9s", "");
  for (int to = 0; to < ranks; ++to) std::printf(" %14d", to);
  std::printf("\n");
  for (int from = 0; from < ranks; ++from) {
    std::printf("%10d", from);
    for (int to = 0; to < ranks; ++to)
      std::printf(" %14" PRIu64,
                  bytes[static_cast<size_t>(from) * static_cast<size_t>(ranks) + static_cast<size_t>(to)]);
    std::printf("\n");
  }
}

void Report::foot(uint64_t wrong) {
  progress("");
  if (!prints_table() || rows_ == 0) return;
  if (options_.check != Check::Off)
    std::printf("# wrong values: %" PRIu64 " %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
  std::printf("# average bus bandwidth: %.3f GB/s\n", busbw_sum_ / static_cast<double>(rows_));
  std::fflush(stdout);
}

launch::Outcome Report::close() const {
  if (!json_file_.is_open() || json_file_.good()) return {};
  return launch::failure(launch::ExitCode::Usage, "--json %s: not all could be written; is its disk full?",
                         options_.json.c_str());
}

void Report::progress(const std::string& text) {
  if (!speaks_ || !options_.progress || ::isatty(STDERR_FILENO) == 0) return;
  if (text.empty() && !progress_shown_) return;
  progress_shown_ = !text.empty();
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  std::fflush(stderr);
}

}  // namespace ccom::bench
