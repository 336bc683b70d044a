// SPDX-License-Identifier: Apache-2.0
//
// What the conformance tests share: all transports of one job, payloads that can be recognised, a sink that checks its
// pieces.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/conformance/transport_suite.h"

namespace ccom::conformance {

inline constexpr size_t kMiB = size_t{1} << 20;

// Longer than any test needs, also under a sanitizer on a busy machine.
inline constexpr auto kTimeout = std::chrono::seconds(60);

// A message's content is a function of its seed.
void fill(Bytes bytes, uint64_t seed);
std::vector<std::byte> payload(size_t size_bytes, uint64_t seed);
bool matches(ConstBytes bytes, uint64_t seed);
Envelope envelope(uint64_t number);

// Copies what it is given, and checks the promises about pieces.
class CheckingSink final : public Sink {
 public:
  explicit CheckingSink(size_t size_bytes) : bytes_(size_bytes), seen_((size_bytes + 15) / 16, false) {}
  void consume(size_t offset_bytes, ConstBytes bytes) override;
  bool is_complete() const { return seen_bytes_ == bytes_.size() && !violated_; }
  bool is_untouched() const { return seen_bytes_ == 0 && !violated_; }
  ConstBytes bytes() const { return bytes_; }
  bool inside_progress = true;  // the test says where it is

 private:
  std::vector<std::byte> bytes_;
  std::vector<bool> seen_;  // one for every 16 bytes
  size_t seen_bytes_ = 0;
  bool violated_ = false;
};

// All that one rank's progress() has reported.
struct Report {
  std::map<Token, int> completed;
  std::optional<Mismatch> mismatch;
  std::vector<Token> ended;
  Status status;  // the first that was not ok
  bool has(Token token) const { return completed.contains(token); }
};

// The transports of one job. Once connected, the test's thread may drive them all, which makes it master of the order
// of events; or hand each to a thread of its own.
class TestJob {
 public:
  TestJob(const Member& member, JobShape shape);
  TestJob(const TestJob&) = delete;
  TestJob& operator=(const TestJob&) = delete;

  // Connects all ranks but those in `absent`, each in a thread; the results by rank.
  std::vector<Status> connect(std::chrono::nanoseconds timeout = kTimeout, std::vector<Rank> absent = {});
  std::vector<Peer> peers_of(Rank rank) const;

  Transport& operator[](Rank rank) { return *transports_[static_cast<size_t>(rank)]; }
  Channel& channel(Rank from, Rank to, int index = 0);
  void destroy(Rank rank) { transports_[static_cast<size_t>(rank)].reset(); }
  int ranks() const { return shape_.ranks; }

  // The operations below fail the test if the transport answers with an error.
  void send(Rank from, Rank to, int index, uint64_t envelope_number, ConstBytes payload, Token token);
  void receive(Rank at, Rank from, int index, uint64_t envelope_number, Bytes target, Token token,
               bool may_end = false);
  void receive(Rank at, Rank from, int index, uint64_t envelope_number, size_t size_bytes, Sink& sink, Token token);

  // One call of progress() for the rank, or for every rank that is still there and has not failed.
  void step(Rank rank);
  void step();
  // Steps all ranks until `done`; false when timeout is over.
  bool step_until(const std::function<bool()>& done);
  bool step_until_complete(Rank rank, size_t completions);
  Report& report(Rank rank) { return reports_[static_cast<size_t>(rank)]; }

 private:
  const JobShape shape_;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Report> reports_;
};

// A connected job; the test has failed if it is not.
std::unique_ptr<TestJob> connected(const Member& member, JobShape shape);

inline constexpr int kAFewSteps = 200;  // when nothing can be waited for

}  // namespace ccom::conformance
