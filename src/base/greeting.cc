// SPDX-License-Identifier: Apache-2.0
#include "base/greeting.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "base/handshake.h"

namespace ccom {
namespace {

constexpr std::chrono::seconds kSilence{60};

}  // namespace

size_t measure_handshake(ConstBytes begin) {
  const HandshakeMessage model;
  const size_t known = std::min(begin.size(), sizeof model.magic);
  return std::ranges::equal(begin.first(known), model.bytes().first(known)) ? sizeof model : 0;
}

// RFC 8446, 5.1: type handshake, version 3.x, length.
size_t measure_client_hello(ConstBytes begin) {
  constexpr size_t kHeaderBytes = 5, kMostBytes = 4096;
  if (!begin.empty() && begin[0] != std::byte{22}) return 0;
  if (begin.size() > 1 && begin[1] != std::byte{3}) return 0;
  if (begin.size() < kHeaderBytes) return kHeaderBytes;
  const size_t length = std::to_integer<size_t>(begin[3]) << 8 | std::to_integer<size_t>(begin[4]);
  return length == 0 || length > kMostBytes ? 0 : kHeaderBytes + length;
}

size_t measure_either(ConstBytes begin) {
  return begin.empty() || begin[0] != std::byte{22} ? measure_handshake(begin) : measure_client_hello(begin);
}

// The kernel completes a connection with the first segment that has data; the filter sees that segment, from its TCP
// header on, before it does. Segments without data pass, and pieces of a prefix, which the process judges.
void filter_greetings(int listener, const Greeting& greeting) {
  constexpr uint32_t kAll = ~uint32_t{0};
  std::vector<sock_filter> code{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),  // the header's length in words, in the upper half
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3c),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
  };
  constexpr size_t kOfEach = 5;
  const auto count = std::ranges::count_if(greeting.prefixes, [](const auto& each) { return each.bytes != 0; });
  const size_t accept = code.size() + static_cast<size_t>(count) * kOfEach + 1;
  const auto to_accept = [&] { return static_cast<uint8_t>(accept - code.size() - 1); };
  for (const Greeting::Prefix& prefix : greeting.prefixes) {
    if (prefix.bytes == 0) continue;
    const auto width = static_cast<uint16_t>(prefix.bytes == 4 ? BPF_W : BPF_H);
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
    code.push_back(BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, prefix.bytes, 0, to_accept()));
    code.push_back({static_cast<uint16_t>(BPF_LD | width | BPF_IND), 0, 0, 0});
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, prefix.number, to_accept(), 0));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  code.push_back(BPF_STMT(BPF_RET | BPF_K, kAll));
  const sock_fprog program{static_cast<uint16_t>(code.size()), code.data()};
  // Without one of the two, strangers cost the process more.
  (void)::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  keep_silent_ones(listener, kSilence);
}

void keep_silent_ones(int listener, std::chrono::seconds most) {
  const int seconds = static_cast<int>(most.count());
  (void)::setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
}

void unfilter(int socket) {
  const int unused = 0;
  (void)::setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace ccom
