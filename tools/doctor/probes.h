// SPDX-License-Identifier: Apache-2.0
//
// Tests whether this host can connect to the others' data addresses, and whether data larger than a frame arrives.
//
// Plain TCP, in order to test the network rather than ccom. The connecting side presents a token derived from the
// rendezvous' secret before the listener accepts more than 32 bytes; then 64 KiB are sent in each direction in turn,
// all with deadlines.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/secret.h"
#include "tools/doctor/report.h"

namespace ccom::doctor {

// Listens on this host's data addresses until destroyed. Runs a thread, and one per connection.
class Answering {
 public:
  // Sets the ports in `addresses`; an address on which listening fails keeps 0, and the reason is added to `failures`.
  Answering(const Secret& secret, std::vector<DataAddress>& addresses, std::vector<std::string>& failures);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  void accept_all();

  const Secret secret_;
  std::vector<Descriptor> listeners_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;  // declared last: starts when all else is initialised
};

// Tries every address of every other host, many concurrently. Takes at most kProbeSeconds for every 64 addresses.
std::vector<Reach> try_all(const Secret& secret, int from, const std::vector<HostEntry>& hosts);
constexpr int kProbeSeconds = 16;

}  // namespace ccom::doctor
