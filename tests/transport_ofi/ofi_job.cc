// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_ofi/ofi_job.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include "tests/harness/threads.h"
#include "transports/ofi/fabric.h"

namespace ccom::ofi {

OfiJob::OfiJob(JobOptions options) : options_(std::move(options)), reports_(static_cast<size_t>(options_.ranks)) {
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    const OfiConfig mine = config(rank);
    auto endpoint = open_fabric(mine.provider, mine.bind_address);
    if (!endpoint) {
      status_ = endpoint.error();
      return;
    }
    std::vector<std::unique_ptr<Endpoint>> rails;
    for (const std::string& rail : options_.rails) {
      auto opened = open_fabric(mine.provider, rail, Purpose::Writes);
      if (!opened) {
        status_ = opened.error();
        return;
      }
      rails.push_back(*std::move(opened));
    }
    auto wrapped = options_.wrap ? options_.wrap(rank, *std::move(endpoint)) : *std::move(endpoint);
    auto transport = OfiTransport::create(mine, std::move(wrapped), std::move(rails));
    if (!transport) throw std::runtime_error(transport.error().message());  // GoogleTest reports it
    transports_.push_back(*std::move(transport));
  }
}

OfiConfig OfiJob::config(Rank rank) const {
  return {.rank = rank,
          .communicator = communicator_,
          .key = key_,
          .provider = options_.provider,
          .bind_address = options_.bind_address,
          .checksum = options_.checksum,
          .flight_time = options_.flight_time,
          .arena = options_.arena};
}

std::vector<Status> OfiJob::connect(std::chrono::nanoseconds patience, Rank absent) {
  std::vector<Status> results(transports_.size());
  std::vector<Peer> all;
  for (Rank rank = 0; rank < options_.ranks; ++rank) all.push_back({rank, (*this)[rank].address(), options_.channels});
  run_ranks(options_.ranks, [&](Rank rank) {
    if (rank == absent) return;
    std::vector<Peer> peers = all;
    peers.erase(peers.begin() + rank);
    results[static_cast<size_t>(rank)] = (*this)[rank].connect(peers, Deadline::after(patience));
  });
  return results;
}

bool OfiJob::connect_all() {
  return std::ranges::all_of(connect(), [](const Status& status) {
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.is_ok();
  });
}

Channel& OfiJob::channel(Rank at, Rank peer, int index) {
  auto found = (*this)[at].channel(peer, index);
  if (!found) throw std::runtime_error(found.error().message());
  return **found;
}

void OfiJob::destroy_all() {
  run_ranks(options_.ranks, [&](Rank rank) { destroy(rank); });
}

void OfiJob::step() {
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    Report& mine = report(rank);
    if (transports_[static_cast<size_t>(rank)] == nullptr || !mine.status.is_ok() || mine.mismatch) continue;
    Events events;
    mine.status = (*this)[rank].progress(events);
    mine.completed.insert(mine.completed.end(), events.completed.begin(), events.completed.end());
    mine.mismatch = events.mismatch;
  }
}

bool OfiJob::step_until(const std::function<bool()>& done, std::chrono::nanoseconds patience) {
  const Deadline deadline = Deadline::after(patience);
  while (!done()) {
    const bool failed = std::ranges::any_of(reports_, [](const Report& report) { return !report.status.is_ok(); });
    if (failed || deadline.passed()) return done();
    step();
  }
  return true;
}

bool OfiJob::carry(Rank from, Rank to, size_t size_bytes, Token token) {
  const auto sent = pattern(size_bytes, token);
  std::vector<std::byte> received(size_bytes);
  const size_t before = report(to).completed.size();
  if (!channel(to, from).post_receive({{}, size_bytes, received.data(), nullptr, token}).is_ok()) return false;
  if (!channel(from, to).post_send({{}, sent, token}).is_ok()) return false;
  return step_until([&] { return report(to).completed.size() > before; }) && received == sent;
}

std::vector<std::byte> pattern(size_t size_bytes, uint64_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  std::mt19937_64 engine(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

}  // namespace ccom::ofi
