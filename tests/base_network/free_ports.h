// SPDX-License-Identifier: Apache-2.0
//
// Ports in a row that nobody uses, outside the range from which the kernel takes them by itself.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "base/tcp_socket.h"

namespace ccom {

inline PortRange free_ports(uint16_t size) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    const auto low = static_cast<uint16_t>(12000 + random() % 9000);
    int free = 0;
    for (uint16_t port = low; port < low + size; ++port) free += listen_at("127.0.0.1", {port, port}, 1) ? 1 : 0;
    if (free == size) return {low, static_cast<uint16_t>(low + size - 1)};
  }
  ADD_FAILURE() << "no " << size << " free ports in a row";
  return {};
}

}  // namespace ccom
