// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/readiness.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/fork.h"
#include "transports/tcp/line.h"

namespace ccom::tcp {
namespace {

constexpr std::chrono::nanoseconds kWithoutEvent{1'000'000};  // who cannot be woken sleeps no longer

// Event descriptors that nobody uses at present.
struct IdleEvents {
  Mutex mutex;
  std::vector<Descriptor> events CCOM_GUARDED_BY(mutex);
};
constinit PerProcess<IdleEvents> idle_events;

Descriptor borrow_event() {
  IdleEvents& idle = idle_events.get();
  {
    const Lock lock(idle.mutex);
    if (!idle.events.empty()) {
      Descriptor event = std::move(idle.events.back());
      idle.events.pop_back();
      return event;
    }
  }
  return Descriptor::from([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
}

void give_back(Descriptor event) {
  if (!event.is_open()) return;
  uint64_t ignored = 0;
  (void)!::read(event.get(), &ignored, sizeof ignored);
  IdleEvents& idle = idle_events.get();
  const Lock lock(idle.mutex);
  idle.events.push_back(std::move(event));
}

// What was armed and is ready. Lost connections are, in both directions.
void clear_flags(Line& line, short events) {
  if ((events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0) line.read_armed = false;
  if ((events & (POLLOUT | POLLHUP | POLLERR | POLLNVAL)) != 0) line.write_armed = false;
}

short awaited(const Line& line) {
  return static_cast<short>((line.read_armed ? POLLIN : 0) | (line.write_armed ? POLLOUT : 0));
}

}  // namespace

Status Readiness::prepare(size_t lines) {
  if (lines <= kFew) return {};
  epoll_ = Descriptor::from([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  return epoll_.is_open() ? Status() : system_error(errno, "open an epoll descriptor");
}

// Both use the same bits.
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLHUP == POLLHUP && EPOLLERR == POLLERR);

void Readiness::watch(Line& line) const {
  epoll_event event{};
  event.events = static_cast<uint32_t>(awaited(line)) | EPOLLONESHOT;
  event.data.ptr = &line;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, line.fd, &event) == 0) return;
  if (errno == ENOENT && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, line.fd, &event) == 0) return;
  line.read_armed = line.write_armed = false;  // tried each time
}

void Readiness::arm(Line& line, Direction direction) {
  const bool was_armed = line.read_armed || line.write_armed;
  bool& armed = direction == Direction::Read ? line.read_armed : line.write_armed;
  if (std::exchange(armed, true)) return;
  if (epoll_.is_open()) {
    watch(line);
  } else if (!was_armed) {
    armed_.push_back(&line);
  }
}

void Readiness::look_at_epoll() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      Line& line = *static_cast<Line*>(events[static_cast<size_t>(i)].data.ptr);
      clear_flags(line, static_cast<short>(events[static_cast<size_t>(i)].events));
      if (awaited(line) != 0) watch(line);
    }
  } while (count == static_cast<int>(events.size()));
}

// event: -1, or of which the end of the wait may come.
void Readiness::look_for(std::chrono::nanoseconds at_most, int event) {
  if (epoll_.is_open() && at_most.count() == 0) return look_at_epoll();
  asked_.clear();
  for (Line* line : armed_) asked_.push_back({line->fd, awaited(*line), 0});
  if (epoll_.is_open()) asked_.push_back({epoll_.get(), POLLIN, 0});
  if (event >= 0) asked_.push_back({event, POLLIN, 0});
  if (asked_.empty() && at_most.count() == 0) return;
  const timespec until{.tv_sec = at_most.count() / 1'000'000'000, .tv_nsec = at_most.count() % 1'000'000'000};
  if (::ppoll(asked_.data(), asked_.size(), &until, nullptr) <= 0) return;
  if (epoll_.is_open()) return look_at_epoll();
  for (size_t i = 0; i < armed_.size(); ++i) clear_flags(*armed_[i], asked_[i].revents);
  std::erase_if(armed_, [](const Line* line) { return awaited(*line) == 0; });
}

void Readiness::wait(std::chrono::nanoseconds at_most) {
  Descriptor event = borrow_event();
  {
    const Lock lock(mutex_);
    sleeper_ = event.get();
    if (is_woken()) at_most = std::chrono::nanoseconds(0);
  }
  look_for(event.is_open() ? at_most : std::min(at_most, kWithoutEvent), event.get());
  {
    const Lock lock(mutex_);
    sleeper_ = -1;
  }
  give_back(std::move(event));
}

void Readiness::wake() {
  if (is_woken_.exchange(true)) return;
  const Lock lock(mutex_);
  const uint64_t one = 1;
  if (sleeper_ >= 0) (void)!::write(sleeper_, &one, sizeof one);
}

}  // namespace ccom::tcp
