// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a job over libfabric on loopback, driven by the test's own thread once they are connected.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

inline constexpr auto kPatience = std::chrono::seconds(30);

// Puts something between a transport and its fabric.
using Wrap = std::function<std::unique_ptr<Endpoint>(Rank, std::unique_ptr<Endpoint>)>;

struct JobOptions {
  int ranks = 2;
  int channels = 1;
  std::string provider = "tcp;ofi_rxm";
  bool checksum = true;
  Wrap wrap{};
  // Addresses or domains of endpoints for writes; none by default, so that messages carry all.
  std::vector<std::string> rails{};
  std::string bind_address = "127.0.0.1";
  const Arena* arena = nullptr;
  std::chrono::milliseconds flight_time{1000};
};

class OfiJob {
 public:
  explicit OfiJob(JobOptions options);

  OfiConfig config(Rank rank) const;
  // Not Ok if the provider is not there.
  const Status& status() const { return status_; }
  // Everybody but `absent`, each in a thread; results by rank.
  std::vector<Status> connect(std::chrono::nanoseconds patience = kPatience, Rank absent = -1);
  bool connect_all();

  OfiTransport& operator[](Rank rank) { return *transports_[static_cast<size_t>(rank)]; }
  Channel& channel(Rank at, Rank peer, int index = 0);
  void destroy(Rank rank) { transports_[static_cast<size_t>(rank)].reset(); }
  void destroy_all();  // at the same time, so that they take leave of each other
  void step();
  // Posts both ends of a message, and steps until it has arrived; whether it came as it was sent.
  bool carry(Rank from, Rank to, size_t size_bytes, Token token = 1);
  // Steps everybody until `done` or an error.
  bool step_until(const std::function<bool()>& done, std::chrono::nanoseconds patience = kPatience);

  struct Report {
    std::vector<Token> completed;
    std::optional<Mismatch> mismatch;
    Status status;
  };
  Report& report(Rank rank) { return reports_[static_cast<size_t>(rank)]; }

 private:
  const JobOptions options_;
  const Secret key_ = Secret::random();
  const uint64_t communicator_ = random_u64();
  Status status_;
  std::vector<std::unique_ptr<OfiTransport>> transports_;
  std::vector<Report> reports_;
};

std::vector<std::byte> pattern(size_t size_bytes, uint64_t seed);

}  // namespace ccom::ofi
