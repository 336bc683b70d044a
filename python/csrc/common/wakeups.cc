// SPDX-License-Identifier: Apache-2.0
#include "wakeups.h"

#include <Python.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>

#include "reference.h"

namespace ccom_python {
namespace {

using Clock = std::chrono::steady_clock;

// A main thread that runs Python gets to a signal within this.
constexpr std::chrono::milliseconds kPatience{500};

// Of this process; a forked child makes another one.
struct Wakeups {
  std::mutex guard;
  pid_t owner = 0;
  int receiving = -1, sending = -1;
  std::optional<Clock::time_point> since;  // SIGINT has come, and the main thread has been asked to say that it runs
};

// Never destroyed: threads may ask while the process ends.
Wakeups& wakeups() {
  static Wakeups& all = *new Wakeups;
  return all;
}

std::atomic<bool> main_thread_runs{false};

int say_that_it_runs(void*) {
  main_thread_runs.store(true, std::memory_order_release);
  return 0;
}

// The number of a signal that this process has had; nothing if there is none. A forked child writes to the same socket.
std::optional<int> next_signal(int socket) {
  while (true) {
    unsigned char number = 0;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    iovec bytes{&number, 1};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(socket, &message, MSG_DONTWAIT) != 1) return std::nullopt;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    if (sender.pid == ::getpid()) return number;
  }
}

bool open_sockets(Wakeups& all) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
  const int on = 1;
  (void)::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  all.receiving = ends[0];
  all.sending = ends[1];
  return true;
}

// The one before; -1 if there was none, or if Python refuses.
int set_wakeup_fd(int fd) {
  const Reference signal(PyImport_ImportModule("signal"));
  const Reference set(signal ? PyObject_GetAttrString(signal.get(), "set_wakeup_fd") : nullptr);
  const Reference arguments(Py_BuildValue("(i)", fd));
  const Reference names(Py_BuildValue("{s:O}", "warn_on_full_buffer", Py_False));
  const Reference before(set && arguments && names ? PyObject_Call(set.get(), arguments.get(), names.get()) : nullptr);
  const long result = before ? PyLong_AsLong(before.get()) : -1;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return static_cast<int>(result);
}

bool raises_keyboard_interrupt() {
  const Reference signal(PyImport_ImportModule("signal"));
  const Reference handler(signal ? PyObject_CallMethod(signal.get(), "getsignal", "i", SIGINT) : nullptr);
  const Reference own(signal ? PyObject_GetAttrString(signal.get(), "default_int_handler") : nullptr);
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return handler && handler.get() == own.get();
}

}  // namespace

bool is_main_thread() { return ::syscall(SYS_gettid) == ::getpid(); }

void watch_wakeups() {
  Wakeups& all = wakeups();
  const std::lock_guard lock(all.guard);
  if (!is_main_thread() || all.owner == ::getpid()) return;
  const int inherited = all.sending;
  if (!open_sockets(all)) return;
  all.owner = ::getpid();
  all.since.reset();
  const int before = set_wakeup_fd(all.sending);
  if (before != -1 && before != inherited) set_wakeup_fd(before);  // the application's
}

bool is_interrupt_stuck() {
  Wakeups& all = wakeups();
  {
    const std::unique_lock lock(all.guard, std::try_to_lock);
    if (!lock || all.owner != ::getpid()) return false;
    while (const std::optional<int> number = next_signal(all.receiving)) {
      if (*number != SIGINT || all.since) continue;
      main_thread_runs.store(false, std::memory_order_release);
      if (Py_AddPendingCall(say_that_it_runs, nullptr) == 0) all.since = Clock::now();
    }
    if (!all.since) return false;
    if (main_thread_runs.load(std::memory_order_acquire)) {
      all.since.reset();
      return false;
    }
    if (Clock::now() - *all.since < kPatience) return false;
  }
  const WithGil gil;
  return !main_thread_runs.load(std::memory_order_acquire) && raises_keyboard_interrupt();
}

}  // namespace ccom_python
