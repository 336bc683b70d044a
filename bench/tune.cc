// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/cores.h"
#include "bench/report.h"
#include "bench/run.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

using launch::Comm;
using launch::ExitCode;
using launch::failure;
using launch::Outcome;
using launch::outcome_of;
using launch::Place;

constexpr size_t kShortBytes = 8;
constexpr size_t kLongBytes = size_t{8} << 20;
constexpr int kBurst = 64;             // Short messages one after another.
constexpr double kSecondsEach = 0.25;  // That a figure's samples may take.
// Vectors of reductions: both lie in the caches of a core.
constexpr size_t kReducedBytes = size_t{64} << 10;
constexpr size_t kMoreReducedBytes = size_t{512} << 10;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The instance type on EC2, else the processor.
std::string machine() {
  const bool is_ec2 = first_line("/sys/devices/virtual/dmi/id/sys_vendor") == "Amazon EC2";
  const std::string product = is_ec2 ? first_line("/sys/devices/virtual/dmi/id/product_name") : "";
  return product.empty() ? cpu_model() : product;
}

double three_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : std::round(value / unit) * unit;
}

class Tuner {
 public:
  Tuner(const Options& options, Place place, ccomComm_t control)
      : options_(options), place_(place), control_(control), buffer_(kLongBytes, std::byte{1}), received_(kLongBytes) {}

  Outcome run() {
    if (place_.ranks < 2) return alike(failure(ExitCode::Usage, "--tune needs at least 2 ranks"));
    CCOM_LAUNCH_TRY(launch::make_sibling(measured_config(options_, place_.ranks, ""), place_, control_, &comm_));
    Outcome outcome = measure();
    if (!outcome.ok() && !outcome.everywhere) ccomCommAbort(comm_.get());
    return outcome;
  }

 private:
  Outcome alike(Outcome outcome) const {
    if (place_.rank != 0) outcome.text.clear();
    outcome.everywhere = true;
    return outcome;
  }

  Outcome measure() {
    ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
    CCOM_LAUNCH_TRY(outcome_of(ccomCommGetInfo(comm_.get(), &info), comm_.get(), "ask about the communicator"));
    if (std::strcmp(info.topology, "host") != 0)
      return alike(failure(ExitCode::Usage, "--tune measures this machine as it is: unset CCOM_TOPOLOGY"));
    const bool shm = std::strstr(info.transports, "shm") != nullptr;
    std::vector<int> locals(static_cast<size_t>(place_.ranks));
    CCOM_LAUNCH_TRY(outcome_of(ccomAllGather(&info.localRank, locals.data(), 1, ccomInt32, control_, nullptr), control_,
                               "collect places"));
    // Hosts are in the order of their lowest ranks: rank 1 shares rank 0's if it is the second one of a host, and the
    // next first rank of a host is on another one.
    if (locals[1] == 1) CCOM_LAUNCH_TRY(measure_host(shm, info.nhosts == 1));
    const auto other = std::find(locals.begin() + 1, locals.end(), 0);
    if (other != locals.end()) {
      CCOM_LAUNCH_TRY(measure_pair(static_cast<int>(other - locals.begin()), speeds_.network));
    }
    return finish();
  }

  // Ranks 0 and 1 with a core each, or as near to that as there are cores.
  Outcome measure_host(bool shm, bool is_alone) {
    CorePair cores;
    CCOM_LAUNCH_TRY(choose_cores(place_, control_, &cores));
    const Pinned pinned(cores.of(place_));
    CCOM_LAUNCH_TRY(measure_pair(1, shm ? speeds_.memory : speeds_.network));
    const bool has_core_each = cores.second >= 0 && place_.ranks <= std::max(2, cores.usable);
    if (shm && is_alone && has_core_each) CCOM_LAUNCH_TRY(measure_reductions());
    if (shm) CCOM_LAUNCH_TRY(measure_memory_costs(place_, control_, comm_.get(), cores, &speeds_.memory_costs));
    return {};
  }

  // Between ranks 0 and `peer`; the others wait. Between hosts long messages go both ways at once, as in collectives:
  // where the processor carries them it does not carry as much each way.
  Outcome measure_pair(int peer, std::optional<Speed>& speed) {
    const bool is_network = &speed == &speeds_.network;
    double short_seconds = 0, long_seconds = 0, burst_seconds = 0;
    CCOM_LAUNCH_TRY(median_of([&] { return round_trip(peer, kShortBytes, 1); }, &short_seconds));
    CCOM_LAUNCH_TRY(median_of([&] { return is_network ? exchange(peer, kLongBytes) : round_trip(peer, kLongBytes, 1); },
                              &long_seconds));
    CCOM_LAUNCH_TRY(median_of([&] { return round_trip(peer, kShortBytes, kBurst); }, &burst_seconds));
    speed = speed_of(short_seconds / 2, is_network ? long_seconds : long_seconds / 2, kLongBytes);
    if (!speed) speeds_.memory_costs.leave_out(is_network ? "network" : "memory");
    const double post = (burst_seconds - short_seconds) / (kBurst - 1) * 1e9;
    if (post > 0 && !speeds_.post_ns) speeds_.post_ns = post;
    return {};
  }

  // `messages` there; one back.
  Outcome round_trip(int peer, size_t bytes, int messages) {
    if (place_.rank != 0 && place_.rank != peer) return {};
    const int other = place_.rank == 0 ? peer : 0;
    const auto send = [&] { return ccomSend(buffer_.data(), bytes, ccomUint8, other, comm_.get(), nullptr); };
    const auto receive = [&] { return ccomRecv(buffer_.data(), bytes, ccomUint8, other, comm_.get(), nullptr); };
    for (int i = 0; i < messages; ++i) {
      CCOM_LAUNCH_TRY(outcome_of(place_.rank == 0 ? send() : receive(), comm_.get(), "send or receive"));
    }
    return outcome_of(place_.rank == 0 ? receive() : send(), comm_.get(), "send or receive");
  }

  Outcome exchange(int peer, size_t bytes) {
    if (place_.rank != 0 && place_.rank != peer) return {};
    const int other = place_.rank == 0 ? peer : 0;
    ccomResult_t result = ccomGroupStart();
    if (result == ccomSuccess) result = ccomSend(buffer_.data(), bytes, ccomUint8, other, comm_.get(), nullptr);
    if (result == ccomSuccess) result = ccomRecv(received_.data(), bytes, ccomUint8, other, comm_.get(), nullptr);
    const ccomResult_t end = ccomGroupEnd();
    return outcome_of(result == ccomSuccess ? end : result, comm_.get(), "exchange");
  }

  // Of rank 0's times. Every rank makes the same number of calls: as many as rank 0 takes kSecondsEach for.
  template <class Call>
  Outcome median_of(Call call, double* seconds) {
    constexpr int kWarmUp = 5;
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < kWarmUp; ++i) CCOM_LAUNCH_TRY(call());
    uint32_t count = static_cast<uint32_t>(std::clamp(kSecondsEach * kWarmUp / seconds_since(begin), 5.0, 5000.0));
    CCOM_LAUNCH_TRY(outcome_of(ccomBroadcast(&count, &count, 1, ccomUint32, 0, control_, nullptr), control_, "agree"));
    std::vector<double> samples;
    for (uint32_t i = 0; i < count; ++i) {
      begin = Clock::now();
      CCOM_LAUNCH_TRY(call());
      samples.push_back(seconds_since(begin));
    }
    std::ranges::sort(samples);
    *seconds = percentile(samples, 0.5);
    return outcome_of(ccomBarrier(control_, nullptr), control_, "barrier");
  }

  // Each rank reads its part of all inputs, which lie in memory that it can reach: n bytes for a vector of n.
  Outcome measure_reductions() {
    void* memory = nullptr;
    CCOM_LAUNCH_TRY(outcome_of(ccomMemAlloc(&memory, 2 * kMoreReducedBytes), comm_.get(), "allocate"));
    const std::unique_ptr<void, void (*)(void*)> owner(memory, [](void* pointer) { ccomMemFree(pointer); });
    std::memset(memory, 0, 2 * kMoreReducedBytes);
    double little = 0, much = 0;
    const auto ranks = static_cast<size_t>(place_.ranks);
    const auto reduce = [&](size_t bytes) {
      const size_t count = bytes / sizeof(float) / ranks;
      return outcome_of(ccomReduceScatter(memory, static_cast<std::byte*>(memory) + kMoreReducedBytes, count,
                                          ccomFloat32, ccomSum, comm_.get(), nullptr),
                        comm_.get(), "reduce");
    };
    CCOM_LAUNCH_TRY(median_of([&] { return reduce(kReducedBytes); }, &little));
    CCOM_LAUNCH_TRY(median_of([&] { return reduce(kMoreReducedBytes); }, &much));
    speeds_.reduce_bytes_per_second = rate_of(kMoreReducedBytes - kReducedBytes, much - little);
    if (!speeds_.reduce_bytes_per_second) speeds_.memory_costs.leave_out("reduce_bytes_per_second");
    return {};
  }

  Outcome finish() {
    uint8_t failed = 0;
    std::string why;
    if (place_.rank == 0) {
      speeds_.measured_on = machine();
      const std::string text = to_json(speeds_);
      std::ofstream file(options_.tune);
      file << text << std::flush;
      failed = file ? 0 : 1;
      if (failed != 0) why = std::strerror(errno);
      for (const std::string& what : speeds_.memory_costs.left_out) std::printf("# left out: %s\n", what.c_str());
      if (failed == 0) std::printf("# written to %s\n%s", options_.tune.c_str(), text.c_str());
    }
    CCOM_LAUNCH_TRY(outcome_of(ccomBroadcast(&failed, &failed, 1, ccomUint8, 0, control_, nullptr), control_, "end"));
    if (failed == 0) return {};
    return alike(failure(ExitCode::Usage, "--tune %s: %s", options_.tune.c_str(), why.c_str()));
  }

  const Options& options_;
  const Place place_;
  const ccomComm_t control_;
  std::vector<std::byte> buffer_, received_;
  Comm comm_;
  Speeds speeds_;
};

}  // namespace

std::optional<double> rate_of(size_t size_bytes, double seconds) {
  constexpr double kLeast = 1e6, kMost = 1e15;  // The file counts megabytes; its reader refuses more.
  if (!(seconds > 0)) return std::nullopt;
  const double rate = static_cast<double>(size_bytes) / seconds;
  return rate >= kLeast && rate <= kMost ? std::optional(rate) : std::nullopt;
}

std::optional<Speed> speed_of(double short_seconds, double long_seconds, size_t long_bytes) {
  const std::optional<double> rate = rate_of(long_bytes, long_seconds - short_seconds);
  if (!rate) return std::nullopt;
  return Speed{short_seconds * 1e9, *rate};
}

// Three or four digits are all that such figures have.
std::string to_json(const Speeds& speeds) {
  using nlohmann::ordered_json;
  const auto megabytes = [](double bytes) { return std::llround(bytes / 1e6) * 1'000'000; };
  const auto speed = [&](const Speed& value) {
    return ordered_json{{"latency_ns", std::llround(value.latency_ns)},
                        {"bytes_per_second", megabytes(value.bytes_per_second)}};
  };
  ordered_json object = ordered_json::object(), costs = ordered_json::object();
  if (speeds.memory) object["memory"] = speed(*speeds.memory);
  if (speeds.network) object["network"] = speed(*speeds.network);
  if (speeds.post_ns) costs["post_ns"] = std::llround(*speeds.post_ns);
  if (speeds.reduce_bytes_per_second) {
    costs["reduce_bytes_per_second"] = megabytes(*speeds.reduce_bytes_per_second);
  }
  if (!costs.empty()) object["costs"] = std::move(costs);
  for (const auto& [key, ns] : speeds.memory_costs.measured) object["memory_costs"][key] = three_digits(ns);
  object["measured_on"] = speeds.measured_on;
  return object.dump(2) + "\n";
}

Outcome tune(const Options& options, Place place, ccomComm_t control) { return Tuner(options, place, control).run(); }

}  // namespace ccom::bench
