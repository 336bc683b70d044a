// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/speeds.h"

#include <ccom/ccom.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/launch/session.h"

namespace ccom::doctor {
namespace {

using namespace std::chrono_literals;
using launch::Comm;
using launch::ExitCode;
using launch::Outcome;
using launch::outcome_of;

constexpr int64_t kLimitMs = 10'000;     // for the start of a pair, and for every call
constexpr int64_t kJobStartMs = 30'000;  // for many ranks
// Additional time for the exchange; ranks that exceed it are reported as missing.
constexpr auto kRoundLimit = 30s;
constexpr auto kJobLimit = 60s;
constexpr size_t kMessageBytes = 256 << 10;
constexpr int kPings = 200;
constexpr double kEnoughSeconds = 0.25;
constexpr uint64_t kMostMessages = 1 << 14;
constexpr size_t kJobCount = (1 << 20) / sizeof(float);

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Outcome send(Comm& comm, const void* data, size_t bytes, int peer) {
  return outcome_of(ccomSend(data, bytes, ccomUint8, peer, comm.get(), nullptr), comm.get(), "send");
}
Outcome receive(Comm& comm, void* data, size_t bytes, int peer) {
  return outcome_of(ccomRecv(data, bytes, ccomUint8, peer, comm.get(), nullptr), comm.get(), "receive");
}

// An id as text, for JSON; "" if none could be created.
std::string id_text(const ccomUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(static_cast<char>('a' + (value >> 4)));
    text.push_back(static_cast<char>('a' + (value & 15)));
  }
  return text;
}
std::optional<ccomUniqueId> id_from(const std::string& text) {
  ccomUniqueId id{};
  if (text.size() != 2 * sizeof id.internal) return std::nullopt;
  for (size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(((text[2 * i] - 'a') << 4) | (text[2 * i + 1] - 'a'));
  }
  return id;
}

Offer make_offer() {
  ccomUniqueId id{};
  const Outcome made = outcome_of(ccomGetUniqueId(&id), nullptr, "create a unique id");
  return made.ok() ? Offer{.id = id_text(id)} : Offer{.failure = made.text};
}

Outcome start(const Offer& offer, launch::Place place, int64_t limit_ms, Comm* comm) {
  const std::optional<ccomUniqueId> id = id_from(offer.id);
  if (!id) return launch::failure(ExitCode::Communication, "%s", offer.failure.c_str());
  launch::SessionConfig config;
  config.common.commName = "ccom-doctor";
  config.common.initTimeoutMs = limit_ms;
  config.common.timeoutMs = kLimitMs;
  return launch::make_comm(config, place, *id, comm);
}

std::string transports_of(const Comm& comm) {
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  return ccomCommGetInfo(comm.get(), &info) == ccomSuccess ? info.transports : "";
}

// The first rank signals the last iteration: a slow network gets fewer.
Outcome ping(Comm& comm, int self, double* latency_ns) {
  constexpr int kWarmups = 20;
  Clock::time_point begin = Clock::now();
  for (int i = 0;; ++i) {
    if (i == kWarmups) begin = Clock::now();
    uint64_t is_last = i + 1 == kWarmups + kPings || (i > kWarmups && seconds_since(begin) > 2) ? 1 : 0;
    if (self == 0) CCOM_LAUNCH_TRY(send(comm, &is_last, sizeof is_last, 1));
    CCOM_LAUNCH_TRY(receive(comm, &is_last, sizeof is_last, 1 - self));
    if (self == 1) CCOM_LAUNCH_TRY(send(comm, &is_last, sizeof is_last, 0));
    if (is_last == 0) continue;
    *latency_ns = seconds_since(begin) * 1e9 / 2 / (i + 1 - kWarmups);
    return {};
  }
}

// The sender announces bursts, each twice the previous one, until one takes long enough to count. 0 ends the
// measurement.
Outcome stream(Comm& comm, int self, int sender, double* bytes_per_second) {
  std::vector<std::byte> data(kMessageBytes);
  double last = 0;
  for (uint64_t messages = 1;; messages *= 2) {
    uint64_t burst = last > kEnoughSeconds || messages > kMostMessages ? 0 : messages;
    const Clock::time_point begin = Clock::now();
    CCOM_LAUNCH_TRY(self == sender ? send(comm, &burst, sizeof burst, 1 - self)
                                   : receive(comm, &burst, sizeof burst, sender));
    if (burst == 0) return {};
    for (uint64_t i = 0; i < burst; ++i) {
      CCOM_LAUNCH_TRY(self == sender ? send(comm, data.data(), data.size(), 1 - self)
                                     : receive(comm, data.data(), data.size(), sender));
    }
    CCOM_LAUNCH_TRY(self == sender ? receive(comm, &burst, sizeof burst, 1 - self)
                                   : send(comm, &burst, sizeof burst, sender));
    last = seconds_since(begin);
    if (self != sender) last = 0;  // the sender decides
    *bytes_per_second = static_cast<double>(messages * kMessageBytes) / seconds_since(begin);
  }
}

Outcome measure(const Offer& offer, int self, Speed* speed) {
  Comm comm;
  CCOM_LAUNCH_TRY(start(offer, {.rank = self, .ranks = 2}, kLimitMs, &comm));
  speed->transports = transports_of(comm);
  CCOM_LAUNCH_TRY(ping(comm, self, &speed->latency_ns));
  CCOM_LAUNCH_TRY(stream(comm, self, 0, &speed->there_bytes_per_second));
  return stream(comm, self, 1, &speed->back_bytes_per_second);
}

Outcome reduce(const Offer& offer, launch::Place place, Job* job) {
  Comm comm;
  const Clock::time_point begin = Clock::now();
  CCOM_LAUNCH_TRY(start(offer, place, kJobStartMs, &comm));
  job->start_ms = seconds_since(begin) * 1e3;
  job->transports = transports_of(comm);
  for (const size_t count : {size_t{2}, kJobCount}) {
    const int repeats = count == kJobCount ? 5 : 50;
    std::vector<float> data(count);
    double seconds = 0;
    for (int i = 0; i < repeats; ++i) {
      std::ranges::fill(data, 1.0F);
      const Clock::time_point call = Clock::now();
      CCOM_LAUNCH_TRY(
          outcome_of(ccomAllReduce(data.data(), data.data(), count, ccomFloat32, ccomSum, comm.get(), nullptr),
                     comm.get(), "allreduce"));
      seconds += seconds_since(call);
      const auto expected = static_cast<float>(place.ranks);
      if (!std::ranges::all_of(data, [expected](float value) { return value == expected; })) {
        return launch::failure(ExitCode::WrongData, "an allreduce of %zu floats returned wrong values", count);
      }
    }
    (count == kJobCount ? job->large_us : job->small_us) = seconds / repeats * 1e6;
  }
  return outcome_of(ccomBarrier(comm.get(), nullptr), comm.get(), "barrier");
}

}  // namespace

std::vector<std::vector<Pair>> rounds_of_pairs(int hosts) {
  const int seats = hosts + hosts % 2;  // with an odd number one host pauses
  std::vector<std::vector<Pair>> rounds;
  for (int round = 0; round + 1 < seats; ++round) {
    std::vector<Pair> pairs;
    for (int i = 0; i < seats / 2; ++i) {
      // Round-robin: the last host keeps its position, the others rotate.
      const int a = i == 0 ? seats - 1 : (round + i) % (seats - 1);
      const int b = (round + seats - 1 - i) % (seats - 1);
      if (std::max(a, b) < hosts) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

namespace {

// The better of two measurements of a pair counts: noise only makes it slower.
void enter(const Speed& measured, std::vector<Speed>& speeds) {
  const auto earlier = std::ranges::find_if(
      speeds, [&measured](const Speed& speed) { return speed.a == measured.a && speed.b == measured.b; });
  if (earlier == speeds.end()) {
    speeds.push_back(measured);
  } else if (measured.failure.empty()) {
    earlier->latency_ns = std::min(earlier->latency_ns, measured.latency_ns);
    earlier->there_bytes_per_second = std::max(earlier->there_bytes_per_second, measured.there_bytes_per_second);
    earlier->back_bytes_per_second = std::max(earlier->back_bytes_per_second, measured.back_bytes_per_second);
  } else {
    *earlier = measured;
  }
}

}  // namespace

Status measure_pairs(JobRendezvous& rendezvous, int rank, const std::vector<std::vector<Pair>>& rounds,
                     Report& report) {
  const auto leader = [&report](int host) { return report.hosts[static_cast<size_t>(host)].ranks.front(); };
  for (const std::vector<Pair>& pairs : rounds) {
    if (pairs.empty()) continue;
    const auto own = std::ranges::find_if(
        pairs, [&](Pair pair) { return leader(pair.first) == rank || leader(pair.second) == rank; });
    const bool offers = own != pairs.end() && leader(own->first) == rank;
    CCOM_TRY_ASSIGN(const std::vector<Offer> all,
                    rendezvous.exchange("pairs", offers ? make_offer() : Offer{}, kRoundLimit));
    Speed speed;
    if (own != pairs.end()) {
      speed.a = own->first;
      speed.b = own->second;
      const Outcome outcome = measure(all[static_cast<size_t>(leader(speed.a))], offers ? 0 : 1, &speed);
      speed.failure = outcome.text;
    }
    CCOM_TRY_ASSIGN(const std::vector<Speed> measured, rendezvous.exchange("speeds", speed, kRoundLimit));
    for (const Pair& pair : pairs) {
      Speed of_pair = measured[static_cast<size_t>(leader(pair.first))];
      const Speed& other = measured[static_cast<size_t>(leader(pair.second))];
      of_pair.back_bytes_per_second = other.back_bytes_per_second;  // each direction as measured by its sender
      if (of_pair.failure.empty()) of_pair.failure = other.failure;
      enter(of_pair, report.speeds);
    }
  }
  return {};
}

Status try_job(JobRendezvous& rendezvous, int rank, Report& report) {
  CCOM_TRY_ASSIGN(const std::vector<Offer> all,
                  rendezvous.exchange("job", rank == 0 ? make_offer() : Offer{}, kJobLimit));
  Job job{.tried = true};
  job.failure = reduce(all[0], {.rank = rank, .ranks = report.nranks}, &job).text;
  CCOM_TRY_ASSIGN(const std::vector<Job> jobs, rendezvous.exchange("result", job, kJobLimit));
  report.job = jobs[0];
  for (const Job& other : jobs) {
    if (report.job.failure.empty()) report.job.failure = other.failure;
  }
  return {};
}

}  // namespace ccom::doctor
