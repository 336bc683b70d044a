// SPDX-License-Identifier: Apache-2.0
#include "base/unproved.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ccom {
namespace {

constexpr std::chrono::seconds kGreetingPatience{2};
constexpr std::chrono::milliseconds kShortagePause{
    50};  // without descriptors or memory, accept() would fail again at once
constexpr size_t kAcceptsAtOnce = 256;
constexpr size_t kEventsAtOnce = 64;
constexpr uint64_t kFirstNumber = uint64_t{1} << 32;  // smaller ones are listeners

// An eighth of the descriptors that the process may have: strangers must not take them all.
size_t most_unproved() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 16;
  return static_cast<size_t>(std::clamp<rlim_t>(limit.rlim_cur / 8, 16, 256));
}

bool is_shortage_of_accept(int number) {
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

}  // namespace

Result<UnprovedConnections> UnprovedConnections::create(const Greeting& greeting) {
  Descriptor events(::epoll_create1(EPOLL_CLOEXEC));
  if (!events.is_open()) return system_error(errno, "open an epoll descriptor");
  return UnprovedConnections(greeting, std::move(events));
}

UnprovedConnections::UnprovedConnections(const Greeting& greeting, Descriptor events)
    : greeting_(greeting), events_(std::move(events)), most_waiting_(most_unproved()), next_number_(kFirstNumber) {}

Status UnprovedConnections::add_listener(int socket) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = listeners_.size()}};
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket, &event) != 0)
    return system_error(errno, "wait for connections");
  filter_greetings(socket, greeting_);
  listeners_.push_back(socket);
  return Status::ok();
}

void UnprovedConnections::remove_listeners() {
  for (const int listener : listeners_) (void)::epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener, nullptr);
  listeners_.clear();
}

void UnprovedConnections::set_listening(bool on) {
  is_paused_ = !on;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event{.events = on ? uint32_t{EPOLLIN} : 0u, .data = {.u64 = i}};
    (void)::epoll_ctl(events_.get(), EPOLL_CTL_MOD, listeners_[i], &event);
  }
}

UnprovedConnections::State UnprovedConnections::look_at(int socket) const {
  std::array<std::byte, kHeadBytes> head;
  const ssize_t got = ::recv(socket, head.data(), head.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return State::Wrong;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? State::Incomplete : State::Wrong;
  const size_t whole = greeting_.measure(ConstBytes(head).first(static_cast<size_t>(got)));
  int arrived = 0;
  if (whole == 0 || ::ioctl(socket, FIONREAD, &arrived) != 0) return State::Wrong;
  return static_cast<size_t>(got) >= std::min(whole, head.size()) && static_cast<size_t>(arrived) >= whole
             ? State::Complete
             : State::Incomplete;
}

// Something has arrived, or the peer has closed.
void UnprovedConnections::look_again(Number number) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  Descriptor& socket = found->second.socket;
  const State state = look_at(socket.get());
  if (state == State::Incomplete) return;
  if (state == State::Complete) {
    (void)::epoll_ctl(events_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
    complete_.push_back(std::move(socket));
  } else {
    ++refused_;
  }
  waiting_.erase(found);
}

// Drops the oldest one, unless it has spoken by now. False if there is none.
bool UnprovedConnections::make_room() {
  if (waiting_.empty()) return false;
  const Number oldest = waiting_.begin()->first;
  look_again(oldest);
  if (waiting_.erase(oldest) > 0) ++refused_;
  return true;
}

void UnprovedConnections::accept_from(int listener) {
  for (size_t i = 0; i < kAcceptsAtOnce; ++i) {
    const auto accept = [&] { return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); };
    auto socket = Descriptor::from(accept);
    if (!socket.is_open()) {
      const int reason = errno;
      if (reason == EINTR || reason == ECONNABORTED) continue;
      if (!is_shortage_of_accept(reason)) return;
      if (make_room()) continue;
      pause_ = Deadline::after(kShortagePause);
      return set_listening(false);
    }
    unfilter(socket.get());
    const State state = look_at(socket.get());
    if (state == State::Wrong) ++refused_;
    if (state == State::Complete) complete_.push_back(std::move(socket));
    if (state != State::Incomplete) continue;
    if (waiting_.size() >= most_waiting_) make_room();
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u64 = next_number_}};
    if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) continue;
    waiting_.emplace(next_number_++, Waiting{std::move(socket), Deadline::after(kGreetingPatience)});
  }
}

void UnprovedConnections::drop_late() {
  while (!waiting_.empty() && waiting_.begin()->second.deadline.passed()) make_room();
}

Descriptor UnprovedConnections::next() {
  if (complete_.empty()) {
    if (is_paused_ && pause_.passed()) set_listening(true);
    std::array<epoll_event, kEventsAtOnce> ready;
    const int count = ::epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
      const uint64_t number = ready[static_cast<size_t>(i)].data.u64;
      if (number >= kFirstNumber) {
        look_again(number);
      } else if (number < listeners_.size()) {
        accept_from(listeners_[number]);
      }
    }
    drop_late();
  }
  if (complete_.empty()) return Descriptor();
  Descriptor socket = std::move(complete_.front());
  complete_.pop_front();
  return socket;
}

int UnprovedConnections::wait_ms() const {
  if (!complete_.empty()) return 0;
  if (waiting_.empty() && !is_paused_) return -1;
  Deadline soonest = is_paused_ ? pause_ : waiting_.begin()->second.deadline;
  if (!waiting_.empty()) soonest = soonest.earlier(waiting_.begin()->second.deadline);
  return static_cast<int>(soonest.left_ms()) + 1;
}

}  // namespace ccom
