// SPDX-License-Identifier: Apache-2.0
//
// Can this host reach the others' data addresses, and does what is longer than a frame get through?
//
// Plain TCP, because it must say what the network does, not what ccom makes of it. Who connects shows a token derived
// from the meeting's secret before the listener takes more than 32 bytes from it; then 64 KiB go each way a step at a
// time, all within deadlines.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/secret.h"
#include "tools/doctor/report.h"

namespace ccom::doctor {

// Listens on the data addresses of this host until it is destroyed. Runs a thread, and one per connection.
class Answering {
 public:
  // Sets the ports in `addresses`; an address where nobody can listen keeps 0 and gets its reason into `failures`.
  Answering(const Secret& secret, std::vector<DataAddress>& addresses, std::vector<std::string>& failures);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  void accept_all();

  const Secret secret_;
  std::vector<Descriptor> listeners_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;  // the last: starts when all else is there
};

// Tries every address of every other host, many at a time. Takes at most kProbeSeconds for every 64 addresses.
std::vector<Reach> try_all(const Secret& secret, int from, const std::vector<HostEntry>& hosts);
constexpr int kProbeSeconds = 16;

}  // namespace ccom::doctor
