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

// Ranks 0 to count - 1, each with the one that is `peer` ranks on. All others wait.
struct Pairs {
  int peer = 1, count = 1;
};

// One way.
struct MessageTimes {
  double short_seconds = 0, long_seconds = 0;
};

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
    if (other != locals.end()) CCOM_LAUNCH_TRY(measure_network(locals, static_cast<int>(other - locals.begin())));
    return finish();
  }

  // Of the first ranks of two hosts alone; then of all their ranks at once, each with its counterpart.
  Outcome measure_network(const std::vector<int>& locals, int other) {
    MessageTimes alone, together;
    CCOM_LAUNCH_TRY(measure_alone(other, true, &alone));
    int count = 0;
    while (count < other && other + count < place_.ranks && locals[static_cast<size_t>(count)] == count &&
           locals[static_cast<size_t>(other + count)] == count) {
      ++count;
    }
    if (count > 1) {
      CCOM_LAUNCH_TRY(measure({other, count}, true, &together));
      note_sharing(alone, together, count);
    } else {
      speeds_.network_costs.left_out.emplace_back("network_costs: there are no two ranks side by side on each host");
    }
    return {};
  }

  // What ranks of a host lose by sending at once: messages wait for others', and the network is shared. What it carries
  // of one rank alone may be that rank's own limit.
  void note_sharing(const MessageTimes& alone, const MessageTimes& together, int count) {
    if (!speeds_.network) return;
    const double message_ns = (together.short_seconds - alone.short_seconds) / (count - 1) * 1e9;
    speeds_.network_costs.add("message_ns", message_ns);
    if (message_ns > 0) speeds_.network->latency_ns = std::max(speeds_.network->latency_ns - message_ns, 0.0);
    speeds_.network_costs.add("flow_byte_ns", 1e9 / speeds_.network->bytes_per_second);
    if (const auto speed = speed_of(together.short_seconds, together.long_seconds, kLongBytes)) {
      speeds_.network->bytes_per_second = std::max(speeds_.network->bytes_per_second, count * speed->bytes_per_second);
    }
  }

  // Ranks 0 and 1 with a core each, or as near to that as there are cores.
  Outcome measure_host(bool shm, bool is_alone) {
    CorePair cores;
    CCOM_LAUNCH_TRY(choose_cores(place_, control_, &cores));
    const Pinned pinned(cores.of(place_));
    MessageTimes times;
    CCOM_LAUNCH_TRY(measure_alone(1, !shm, &times));
    const bool has_core_each = cores.second >= 0 && place_.ranks <= std::max(2, cores.usable);
    if (shm && is_alone && has_core_each) CCOM_LAUNCH_TRY(measure_reductions());
    if (shm) CCOM_LAUNCH_TRY(measure_memory_costs(place_, control_, comm_.get(), cores, &speeds_.memory_costs));
    return {};
  }

  // Between hosts long messages go both ways at once, as in collectives: where the processor carries them it does not
  // carry as much each way.
  Outcome measure(Pairs pairs, bool is_network, MessageTimes* times) {
    CCOM_LAUNCH_TRY(median_of([&] { return round_trip(pairs, kShortBytes, 1); }, &times->short_seconds));
    CCOM_LAUNCH_TRY(
        median_of([&] { return is_network ? exchange(pairs, kLongBytes) : round_trip(pairs, kLongBytes, 1); },
                  &times->long_seconds));
    times->short_seconds /= 2;
    if (!is_network) times->long_seconds /= 2;
    return {};
  }

  // Ranks 0 and `peer`: the speed, and what each further message of a burst takes.
  Outcome measure_alone(int peer, bool is_network, MessageTimes* times) {
    const Pairs pair{peer, 1};
    double burst_seconds = 0;
    CCOM_LAUNCH_TRY(measure(pair, is_network, times));
    CCOM_LAUNCH_TRY(median_of([&] { return round_trip(pair, kShortBytes, kBurst); }, &burst_seconds));
    std::optional<Speed>& speed = is_network ? speeds_.network : speeds_.memory;
    speed = speed_of(times->short_seconds, times->long_seconds, kLongBytes);
    if (!speed)
      (is_network ? speeds_.network_costs : speeds_.memory_costs).leave_out(is_network ? "network" : "memory");
    const double post = (burst_seconds - 2 * times->short_seconds) / (kBurst - 1) * 1e9;
    if (post > 0 && !speeds_.post_ns) speeds_.post_ns = post;
    return {};
  }

  bool asks(Pairs pairs) const { return place_.rank < pairs.count; }
  // -1: this rank waits.
  int partner(Pairs pairs) const {
    if (asks(pairs)) return place_.rank + pairs.peer;
    const int other = place_.rank - pairs.peer;
    return other >= 0 && other < pairs.count ? other : -1;
  }

  // `messages` there; one back.
  Outcome round_trip(Pairs pairs, size_t bytes, int messages) {
    const int other = partner(pairs);
    if (other < 0) return {};
    const auto send = [&] { return ccomSend(buffer_.data(), bytes, ccomUint8, other, comm_.get(), nullptr); };
    const auto receive = [&] { return ccomRecv(buffer_.data(), bytes, ccomUint8, other, comm_.get(), nullptr); };
    for (int i = 0; i < messages; ++i) {
      CCOM_LAUNCH_TRY(outcome_of(asks(pairs) ? send() : receive(), comm_.get(), "send or receive"));
    }
    return outcome_of(asks(pairs) ? receive() : send(), comm_.get(), "send or receive");
  }

  Outcome exchange(Pairs pairs, size_t bytes) {
    const int other = partner(pairs);
    if (other < 0) return {};
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
      for (const CostFigures* figures : {&speeds_.network_costs, &speeds_.memory_costs}) {
        for (const std::string& what : figures->left_out) std::printf("# left out: %s\n", what.c_str());
      }
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
  for (const auto& [key, ns] : speeds.network_costs.measured) object["network_costs"][key] = three_digits(ns);
  for (const auto& [key, ns] : speeds.memory_costs.measured) object["memory_costs"][key] = three_digits(ns);
  object["measured_on"] = speeds.measured_on;
  return object.dump(2) + "\n";
}

Outcome tune(const Options& options, Place place, ccomComm_t control) { return Tuner(options, place, control).run(); }

}  // namespace ccom::bench
