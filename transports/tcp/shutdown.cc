// SPDX-License-Identifier: Apache-2.0
//
// How a transport ends without losing what it has reported complete.
#include <algorithm>
#include <thread>

#include "base/log.h"
#include "transports/tcp/tcp_transport.h"

namespace ccom::tcp {
namespace {

constexpr std::chrono::seconds kDeliveryTimeout{1};

}  // namespace

// What is complete may be under way on a rail that is dying: it goes over another one while that is still open.
void TcpTransport::settle_rails() {
  const Deadline usual = Deadline::after(kDeliveryTimeout), at_most = Deadline::after(2 * rail_limit());
  for (;;) {
    {
      const SharedLock lock(shared_);
      bool is_silent = false;
      if (!fails_over() || !shared_.failure.is_ok()) return;
      care_for_channels();
      std::erase_if(shared_.active, [](const TcpChannel* channel) { return !channel->has_flights(); });
      for (const TcpChannel* channel : shared_.active) is_silent |= channel->awaits_answer();
      if (shared_.active.empty() || !shared_.failure.is_ok() || (is_silent ? at_most : usual).passed()) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Closing a socket with unread input makes the kernel discard pending output, as does input after the close. Therefore:
// send the end of stream, and wait until the peers' kernels have received everything.
// That takes a second at most. It needs no memory: there may be none.
void TcpTransport::deliver_rest() {
  const Deadline deadline = Deadline::after(kDeliveryTimeout);
  std::chrono::microseconds pause{20};
  while (!end_and_look()) {
    if (deadline.passed()) {
      log(LogLevel::Info, "rank %d: tcp connections were closed before all data was delivered", self_.rank);
      return;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

bool TcpTransport::end_and_look() {
  const Status& failure = shared_.failure;
  bool is_delivered = true;
  for (const auto& [peer, channels] : channels_) {
    const bool is_gone = failure.code() == Code::RemoteError && std::ranges::count(failure.peers(), peer) > 0;
    for (const auto& channel : channels) {
      for (size_t i = 0; channel != nullptr && i < channel->lines().size(); ++i) {
        if (channel->lines()[i] == nullptr) continue;
        const TcpChannel::Rest rest = channel->end_output(i);
        if (is_gone || unacknowledged_bytes(rest.fd) <= rest.unpromised_bytes) continue;
        discard_input(rest.fd);
        is_delivered = false;
      }
    }
  }
  return is_delivered;
}

}  // namespace ccom::tcp
