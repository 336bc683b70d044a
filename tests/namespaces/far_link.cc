// SPDX-License-Identifier: Apache-2.0
//
// A long link between two interfaces: what arrives at one leaves at the other after a delay, at a limited rate.
//
//   far_link INTERFACE INTERFACE ONE_WAY_US BITS_PER_SECOND [QUEUE_BYTES]
//
// Each way is a queue: a packet leaves it when those before it have left and its own bytes have passed at the rate,
// arrives the delay later, and is dropped if more than QUEUE_BYTES (default: what passes in 100 ms) would wait. So a
// round trip takes twice the delay, and more under load. For kernels without netem: packets are read and written whole
// (AF_PACKET), also those of 64 KiB that a sender leaves to its card to cut. It goes by the times at which the kernel
// got them, and before other processes, so that a busy machine takes nothing from the rate. Prints "ready" and runs
// until it is killed; it needs root, and interfaces that nothing else uses.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace {

using Clock = std::chrono::system_clock;  // as of the kernel's times of arrival
using std::chrono::nanoseconds;

constexpr size_t kHeaderBytes = 10;  // struct virtio_net_hdr, whose own header is not C++
constexpr size_t kMostBytes = kHeaderBytes + (64 << 10) + 256;
constexpr int kSocketBytes = 64 << 20;  // beside the modelled queue nothing may be lost

struct Packet {
  Clock::time_point arrives;
  std::vector<char> bytes;  // virtio_net_hdr, then the frame
};

// One way of the link.
struct Way {
  int from = -1, to = -1;
  Clock::time_point free_at;  // when the last byte of what waits has left
  std::deque<Packet> flying;
};

struct Link {
  nanoseconds delay;
  double ns_per_byte;
  nanoseconds longest_queue;
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}

template <typename Value>
void set(int fd, int level, int option, const Value& value, const char* what) {
  require(::setsockopt(fd, level, option, &value, sizeof value) == 0, what);
}

int open_interface(const char* name) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
  require(fd >= 0, "AF_PACKET socket");
  const int index = static_cast<int>(::if_nametoindex(name));
  require(index > 0, name);
  set(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  set(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  set(fd, SOL_SOCKET, SO_RCVBUFFORCE, kSocketBytes, "SO_RCVBUFFORCE");
  set(fd, SOL_SOCKET, SO_SNDBUFFORCE, kSocketBytes, "SO_SNDBUFFORCE");
  packet_mreq all{};
  all.mr_ifindex = index;
  all.mr_type = PACKET_MR_PROMISC;
  set(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, all, "PACKET_ADD_MEMBERSHIP");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = index;
  require(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  return fd;
}

// Reads a packet into `room`; how many bytes, and when the kernel got it. -1: there is none.
ssize_t read_packet(int fd, std::array<char, kMostBytes>& room, Clock::time_point& came) {
  alignas(cmsghdr) std::array<char, 256> control;
  iovec whole{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(fd, &message, 0);
  came = Clock::now();
  if (got < 0) return got;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(each), sizeof time);
    came = Clock::time_point(std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec));
  }
  return got;
}

void take_in(Way& way, const Link& link) {
  static std::array<char, kMostBytes> room;
  Clock::time_point came;
  while (true) {
    const ssize_t got = read_packet(way.from, room, came);
    if (got <= static_cast<ssize_t>(kHeaderBytes)) return;
    const auto starts = std::max(way.free_at, came);
    if (starts - came > link.longest_queue) continue;
    const auto bytes = static_cast<double>(got) - static_cast<double>(kHeaderBytes);
    way.free_at = starts + nanoseconds(static_cast<int64_t>(bytes * link.ns_per_byte));
    way.flying.push_back({way.free_at + link.delay, {room.data(), room.data() + got}});
  }
}

void hand_out(Way& way) {
  const auto now = Clock::now();
  while (!way.flying.empty() && way.flying.front().arrives <= now) {
    const std::vector<char>& bytes = way.flying.front().bytes;
    if (::send(way.to, bytes.data(), bytes.size(), 0) < 0 && errno != ENOBUFS && errno != EAGAIN) std::perror("send");
    way.flying.pop_front();
  }
}

void arm(int timer, const std::array<Way, 2>& ways) {
  auto next = Clock::time_point::max();
  for (const Way& way : ways) {
    if (!way.flying.empty()) next = std::min(next, way.flying.front().arrives);
  }
  itimerspec when{};
  if (next != Clock::time_point::max()) {
    const int64_t ns = std::max<int64_t>(nanoseconds(next - Clock::now()).count(), 1);
    when.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  require(::timerfd_settime(timer, 0, &when, nullptr) == 0, "timerfd_settime");
}

[[noreturn]] void run(const std::array<int, 2>& fds, const Link& link) {
  std::array<Way, 2> ways{{{.from = fds[0], .to = fds[1], .free_at = {}, .flying = {}},
                           {.from = fds[1], .to = fds[0], .free_at = {}, .flying = {}}}};
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  require(timer >= 0, "timerfd_create");
  while (true) {
    for (Way& way : ways) hand_out(way);
    arm(timer, ways);
    std::array<pollfd, 3> waits{{{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}, {timer, POLLIN, 0}}};
    (void)::poll(waits.data(), waits.size(), -1);
    for (Way& way : ways) take_in(way, link);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "far_link INTERFACE INTERFACE ONE_WAY_US BITS_PER_SECOND [QUEUE_BYTES]\n");
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // ns
  const sched_param first{.sched_priority = 1};
  (void)::sched_setscheduler(0, SCHED_FIFO, &first);  // where that is permitted
  const double ns_per_byte = 8e9 / std::atof(arguments[4]);
  const auto queue = count > 5 ? nanoseconds(static_cast<int64_t>(std::atof(arguments[5]) * ns_per_byte))
                               : nanoseconds(std::chrono::milliseconds(100));
  const Link link{std::chrono::microseconds(std::atoll(arguments[3])), ns_per_byte, queue};
  const std::array<int, 2> fds{open_interface(arguments[1]), open_interface(arguments[2])};
  std::puts("ready");
  std::fflush(stdout);
  run(fds, link);
}
