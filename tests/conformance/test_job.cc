// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/test_job.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/harness/threads.h"

namespace ccom::conformance {
namespace {

// Splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

void fill(Bytes bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = mix(seed * 0x100000001B3ull + at);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), bytes.size() - at));
  }
}

std::vector<std::byte> payload(size_t size_bytes, uint64_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  fill(bytes, seed);
  return bytes;
}

bool matches(ConstBytes bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = mix(seed * 0x100000001B3ull + at);
    if (std::memcmp(bytes.data() + at, &word, std::min(sizeof(word), bytes.size() - at)) != 0) return false;
  }
  return true;
}

Envelope envelope(uint64_t number) { return {{number, mix(number), ~number, 3, number << 32}}; }

void CheckingSink::consume(size_t offset_bytes, ConstBytes bytes) {
  violated_ = true;
  const size_t end = offset_bytes + bytes.size();
  ASSERT_TRUE(inside_progress) << "a sink was called outside progress()";
  ASSERT_LE(end, bytes_.size());
  ASSERT_EQ(offset_bytes % 16, 0u);
  ASSERT_TRUE(end == bytes_.size() || bytes.size() % 16 == 0) << bytes.size() << " bytes at " << offset_bytes;
  for (size_t block = offset_bytes / 16; block * 16 < end; ++block) {
    ASSERT_FALSE(seen_[block]) << "byte " << block * 16 << " came twice";
    seen_[block] = true;
  }
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset_bytes));
  seen_bytes_ += bytes.size();
  violated_ = false;
}

TestJob::TestJob(const Member& member, JobShape shape)
    : shape_(shape), job_(member.make_job(shape)), reports_(static_cast<size_t>(shape.ranks)) {
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    auto transport = job_->make(rank);
    if (!transport) throw std::runtime_error("no transport: " + transport.error().message());  // GoogleTest reports it
    transports_.push_back(*std::move(transport));
  }
}

std::vector<Peer> TestJob::peers_of(Rank rank) const {
  std::vector<Peer> peers;
  for (Rank peer = 0; peer < shape_.ranks; ++peer) {
    if (peer == rank) continue;
    peers.push_back({peer, transports_[static_cast<size_t>(peer)]->address(), shape_.channels});
  }
  return peers;
}

std::vector<Status> TestJob::connect(std::chrono::nanoseconds timeout, std::vector<Rank> absent) {
  std::vector<Status> results(transports_.size());
  std::vector<std::vector<Peer>> peers;
  for (Rank rank = 0; rank < shape_.ranks; ++rank) peers.push_back(peers_of(rank));
  run_ranks(shape_.ranks, [&](Rank rank) {
    const auto i = static_cast<size_t>(rank);
    if (std::ranges::find(absent, rank) == absent.end())
      results[i] = transports_[i]->connect(peers[i], Deadline::after(timeout));
  });
  return results;
}

Channel& TestJob::channel(Rank from, Rank to, int index) {
  auto found = (*this)[from].channel(to, index);
  if (!found) throw std::runtime_error("no channel: " + found.error().message());
  return **found;
}

void TestJob::send(Rank from, Rank to, int index, uint64_t envelope_number, ConstBytes payload, Token token) {
  EXPECT_EQ(channel(from, to, index).post_send({envelope(envelope_number), payload, token}).message(), "");
}

void TestJob::receive(Rank at, Rank from, int index, uint64_t envelope_number, Bytes target, Token token,
                      bool may_end) {
  const Status status =
      channel(at, from, index)
          .post_receive({envelope(envelope_number), target.size(), target.data(), nullptr, token, may_end});
  EXPECT_TRUE(status.is_ok()) << status.message();
}

void TestJob::receive(Rank at, Rank from, int index, uint64_t envelope_number, size_t size_bytes, Sink& sink,
                      Token token) {
  const Status status =
      channel(at, from, index).post_receive({envelope(envelope_number), size_bytes, nullptr, &sink, token});
  EXPECT_TRUE(status.is_ok()) << status.message();
}

void TestJob::step(Rank rank) {
  Report& mine = report(rank);
  if (transports_[static_cast<size_t>(rank)] == nullptr || !mine.status.is_ok() || mine.mismatch) return;
  Events events;
  mine.status = (*this)[rank].progress(events);
  for (const Token token : events.completed) {
    EXPECT_EQ(++mine.completed[token], 1) << "token " << token << " completed again at rank " << rank;
  }
  mine.mismatch = events.mismatch;
  mine.ended.insert(mine.ended.end(), events.ended.begin(), events.ended.end());
}

void TestJob::step() {
  for (Rank rank = 0; rank < shape_.ranks; ++rank) step(rank);
}

bool TestJob::step_until(const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(kTimeout);
  while (!done()) {
    if (deadline.passed()) return false;
    step();
  }
  return true;
}

bool TestJob::step_until_complete(Rank rank, size_t completions) {
  const bool complete = step_until([this, rank, completions] {
    return report(rank).completed.size() >= completions || !report(rank).status.is_ok();
  });
  EXPECT_TRUE(complete) << "rank " << rank << " has " << report(rank).completed.size() << " of " << completions;
  EXPECT_TRUE(report(rank).status.is_ok()) << report(rank).status.message();
  return complete && report(rank).status.is_ok();
}

std::unique_ptr<TestJob> connected(const Member& member, JobShape shape) {
  auto job = std::make_unique<TestJob>(member, shape);
  for (const Status& status : job->connect()) EXPECT_TRUE(status.is_ok()) << status.message();
  return job;
}

}  // namespace ccom::conformance
