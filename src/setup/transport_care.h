// SPDX-License-Identifier: Apache-2.0
//
// Calls care() of transports that need it, from the process's liveness thread, whatever their rank does meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "liveness/liveness_thread.h"
#include "transports/transport.h"

namespace ccom {

class TransportCare final : private LivenessTask {
 public:
  // Null if none of them needs care. They must outlive it.
  static Result<std::unique_ptr<TransportCare>> start(const std::vector<Transport*>& transports);
  TransportCare(std::vector<Transport*> transports, std::shared_ptr<LivenessThread> thread)
      : transports_(std::move(transports)), thread_(std::move(thread)) {}
  ~TransportCare() override;

 private:
  int64_t poll(int64_t now_ns) override;
  bool has_work() const override { return false; }
  void run_out_of_memory() noexcept override {}  // it is tried again
  const std::atomic<uint32_t>* awaited_word() const override { return nullptr; }

  const std::vector<Transport*> transports_;
  const std::shared_ptr<LivenessThread> thread_;
  bool is_added_ = false;
};

}  // namespace ccom
