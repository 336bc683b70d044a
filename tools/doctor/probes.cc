// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/probes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>

#include "tools/doctor/socket.h"

namespace ccom::doctor {
namespace {

using namespace std::chrono_literals;

constexpr size_t kTokenBytes = Secret::kBytes;
constexpr size_t kLargeBytes = 64 << 10;  // several frames of any MTU
constexpr size_t kAtATime = 64;
// A lost SYN is retransmitted after one second and after three.
constexpr auto kConnectLimit = 4s;
constexpr auto kStepLimit = 4s;

using Token = std::array<std::byte, kTokenBytes>;

Token token(const Secret& secret, const char* purpose) {
  Token bytes;
  const Secret key = secret.derive(purpose);
  std::memcpy(bytes.data(), key.bytes().data(), bytes.size());
  return bytes;
}

Token question(const Secret& secret) { return token(secret, "ccom doctor question"); }
Token answer(const Secret& secret) { return token(secret, "ccom doctor answer"); }

// The listener's side: a token, the answer to it; 64 KiB, the answer again.
void serve(const Secret& secret, const Descriptor& socket) {
  Token asked{};
  if (receive_all(socket.get(), asked, Deadline::after(kStepLimit)) != 0) return;
  if (!equal_in_constant_time(asked, question(secret))) return;
  const Token reply = answer(secret);
  if (send_all(socket.get(), reply, Deadline::after(kStepLimit)) != 0) return;
  std::vector<std::byte> large(kLargeBytes);
  if (receive_all(socket.get(), large, Deadline::after(kStepLimit)) != 0) return;
  (void)send_all(socket.get(), reply, Deadline::after(kStepLimit));
}

int expect_answer(const Secret& secret, int socket) {
  Token reply{};
  const int failure = receive_all(socket, reply, Deadline::after(kStepLimit));
  if (failure != 0) return failure;
  return equal_in_constant_time(reply, answer(secret)) ? 0 : EPROTO;
}

std::string describe(int failure) {
  if (failure == EPROTO) return "another program answers there";
  if (failure == EINVAL) return "Invalid argument (as from a blackhole route)";
  return std::strerror(failure);
}

void try_one(const Secret& secret, const DataAddress& target, Reach& reach) {
  const auto say = [&reach](int failure) {
    if (failure != 0) reach.failure = describe(failure);
    return failure == 0;
  };
  const Clock::time_point begin = Clock::now();
  const Opened opened = connect_to(target.address, target.port, Deadline::after(kConnectLimit));
  if (!say(opened.failure)) return;
  reach.connects = true;
  reach.connect_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  const int socket = opened.socket.get();
  if (!say(send_all(socket, question(secret), Deadline::after(kStepLimit)))) return;
  if (!say(expect_answer(secret, socket))) return;
  reach.answers = true;
  const std::vector<std::byte> large(kLargeBytes);
  const int sent = send_all(socket, large, Deadline::after(kStepLimit));
  const int failure = sent != 0 ? sent : expect_answer(secret, socket);
  reach.path_mtu = path_mtu(socket);
  reach.carries = say(failure);
}

}  // namespace

Answering::Answering(const Secret& secret, std::vector<DataAddress>& addresses, std::vector<std::string>& failures)
    : secret_(secret) {
  for (DataAddress& address : addresses) {
    Opened opened = listen_at(address.address, address.port);
    if (opened.failure == 0) {
      listeners_.push_back(std::move(opened.socket));
    } else {
      failures.push_back("listen at " + address.address + ": " + std::strerror(opened.failure));
    }
  }
  thread_ = std::thread([this] { accept_all(); });
}

Answering::~Answering() {
  ends_ = true;
  thread_.join();
}

void Answering::accept_all() {
  std::list<std::jthread> busy;
  while (!ends_) {
    for (const Descriptor& listener : listeners_) {
      Opened opened = accept_from(listener.get(), Deadline::after(20ms));
      if (opened.failure != 0 || busy.size() >= 1024) continue;
      busy.emplace_back([this, socket = std::move(opened.socket)] { serve(secret_, socket); });
    }
    if (listeners_.empty()) std::this_thread::sleep_for(20ms);
  }
  // `busy` joins.
}

std::vector<Reach> try_all(const Secret& secret, int from, const std::vector<HostEntry>& hosts) {
  std::vector<Reach> reaches;
  for (int to = 0; to < static_cast<int>(hosts.size()); ++to) {
    const auto& addresses = hosts[static_cast<size_t>(to)].report.addresses;
    for (int i = 0; to != from && i < static_cast<int>(addresses.size()); ++i) {
      reaches.push_back({.from = from, .to = to, .address = i});
    }
  }
  for (size_t begin = 0; begin < reaches.size(); begin += kAtATime) {
    std::list<std::jthread> busy;
    for (size_t i = begin; i < std::min(reaches.size(), begin + kAtATime); ++i) {
      Reach& reach = reaches[i];
      const DataAddress& target =
          hosts[static_cast<size_t>(reach.to)].report.addresses[static_cast<size_t>(reach.address)];
      if (target.port == 0) {
        reach.failure = "the host could not listen there";
      } else {
        busy.emplace_back([&secret, &target, &reach] { try_one(secret, target, reach); });
      }
    }
    busy.clear();  // joins them
  }
  return reaches;
}

}  // namespace ccom::doctor
