// SPDX-License-Identifier: Apache-2.0
#include "setup/transport_care.h"

#include <chrono>

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

Result<std::unique_ptr<TransportCare>> TransportCare::start(const std::vector<Transport*>& transports) {
  std::vector<Transport*> needy;
  for (Transport* transport : transports) {
    if (transport->needs_care()) needy.push_back(transport);
  }
  std::unique_ptr<TransportCare> care;
  if (needy.empty()) return care;
  CCOM_TRY_ASSIGN(auto thread, LivenessThread::of_this_process());
  care = std::make_unique<TransportCare>(std::move(needy), std::move(thread));
  care->thread_->run([&care] { care->thread_->add(care.get()); });
  care->is_added_ = true;
  return care;
}

// A forked child has no such thread, and its transports are the parent's.
TransportCare::~TransportCare() {
  if (is_added_ && !thread_->in_forked_child()) thread_->run([this] { thread_->remove(this); });
}

int64_t TransportCare::poll(int64_t now_ns) {
  for (Transport* transport : transports_) transport->care();
  return now_ns + std::chrono::nanoseconds(kInterval).count();
}

}  // namespace ccom
