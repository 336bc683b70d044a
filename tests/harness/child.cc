// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/child.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace ccom {
namespace {

template <typename Body>
pid_t fork_to(const Body& body, unsigned most_seconds) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child > 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::alarm(most_seconds);
  ::_exit(body());
}

}  // namespace

void PacketSocket::send(const std::string& text) const { (void)!::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }

std::string PacketSocket::receive() const {
  std::string text(4096, '\0');
  const ssize_t size = ::recv(fd_, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

Child::Child(const std::function<int()>& body, unsigned most_seconds) : pid_(fork_to(body, most_seconds)) {}

Child::Child(const std::function<int(const PacketSocket&)>& body, unsigned most_seconds) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  pid_ = fork_to(
      [&] {
        ::close(ends[0]);
        return body(PacketSocket(ends[1]));
      },
      most_seconds);
  ::close(ends[1]);
  fd_ = ends[0];
}

Child::~Child() {
  kill();
  if (fd_ >= 0) ::close(fd_);
}

void Child::signal(int number) const { ::kill(pid_, number); }

void Child::kill() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  wait();
}

int Child::wait() {
  int status = 0;
  if (::waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int exit_of(const std::function<int()>& body, unsigned most_seconds) { return Child(body, most_seconds).wait(); }

bool holds_in_child(const std::function<bool()>& body, unsigned most_seconds) {
  return exit_of([&body] { return body() ? 0 : 1; }, most_seconds) == 0;
}

}  // namespace ccom
