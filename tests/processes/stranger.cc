// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/stranger.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <new>
#include <sstream>

#include "tests/processes/isolated.h"

namespace ccom {
namespace {

constexpr size_t kConnections = 32;  // kept open at a time
constexpr int kDescriptors = 40;     // of a rank, that are asked for
constexpr char kTlsAlert = 0x15;

class Sweeper {
 public:
  explicit Sweeper(StrangerReport& report) : report_(report) {}

  void sweep() {
    try_sockets();
    try_ports("/proc/net/tcp", AF_INET);
    try_ports("/proc/net/tcp6", AF_INET6);
    try_files("/tmp");
    try_files("/dev/shm");
    for (const auto& rank : report_.ranks) {
      if (const pid_t pid = rank.load(); pid != 0) try_process(pid);
    }
    ++report_.sweeps;
  }
  void finish() {
    while (!connections_.empty()) hang_up();
  }

 private:
  void entered(const std::string& what) {
    if (std::strstr(report_.entered, what.c_str()) != nullptr) return;
    const size_t used = std::strlen(report_.entered);
    std::snprintf(report_.entered + used, sizeof report_.entered - used, "%s\n", what.c_str());
  }

  // ---- unix sockets, which /proc lists for everybody

  void try_sockets() {
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      const size_t at = line.find_first_of("/@", 40);
      if (at == std::string::npos) continue;
      for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) try_socket(line.substr(at), type);
    }
  }

  void try_socket(const std::string& name, int type) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1));
    const bool is_in = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
    // Of another type, or full: it was within reach.
    if (is_in || errno == EPROTOTYPE || errno == EAGAIN) entered("unix socket " + name);
    if (!is_in && errno == EACCES) ++report_.sockets;
    ::close(fd);
  }

  // ---- ports

  void try_ports(const char* list_name, int family) {
    std::ifstream list(list_name);
    for (std::string line; std::getline(list, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits;
      unsigned user = 0;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user;
      if (state != "0A" || user == ::getuid()) continue;
      const size_t colon = local.rfind(':');
      visit(family, local.substr(0, colon), static_cast<uint16_t>(std::stoul(local.substr(colon + 1), nullptr, 16)));
    }
  }

  // Addresses stand there as words in the byte order of this machine.
  void visit(int family, const std::string& hex, uint16_t port) {
    sockaddr_storage storage{};
    storage.ss_family = static_cast<sa_family_t>(family);
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    auto* const words = family == AF_INET ? &v4->sin_addr.s_addr : v6->sin6_addr.s6_addr32;
    for (size_t i = 0; i < hex.size() / 8; ++i)
      words[i] = static_cast<uint32_t>(std::stoul(hex.substr(8 * i, 8), nullptr, 16));
    (family == AF_INET ? v4->sin_port : v6->sin6_port) = htons(port);
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t size = family == AF_INET ? sizeof *v4 : sizeof *v6;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&storage), size) != 0) {
      ::close(fd);
      return;
    }
    ++report_.ports;
    const std::string words_of_strangers[] = {
        "", "GET / HTTP/1.1\r\n\r\n", std::string("CSHK\1\0\1\1", 8) + std::string(152, 'x'),
        std::string("\x16\x03\x01\x01\x00\x01", 6) + std::string(256, 'x'), std::string(200, '\xff')};
    const std::string& said = words_of_strangers[static_cast<size_t>(report_.ports) % std::size(words_of_strangers)];
    if (!said.empty()) (void)::send(fd, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    connections_.push_back({fd, port});
    if (connections_.size() > kConnections) hang_up();
  }

  // Nobody answers, except that a TLS server may say that it does not like what it hears.
  void hang_up() {
    char answer[64];
    const auto [fd, port] = connections_.front();
    const ssize_t size = ::recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (size > 0 && answer[0] != kTlsAlert) entered("port " + std::to_string(port) + " has answered");
    ::close(fd);
    connections_.pop_front();
  }

  // ---- files

  void try_files(const std::string& folder) {
    DIR* const entries = ::opendir(folder.c_str());
    if (entries == nullptr) return;
    while (const dirent* entry = ::readdir(entries)) {
      const std::string name = entry->d_name, path = folder + "/" + name;
      struct stat info {};
      if (name == "." || name == ".." || path == "/tmp/build" || ::lstat(path.c_str(), &info) != 0) continue;
      if (info.st_uid == ::getuid()) continue;
      try_file(path, info);
      if (S_ISDIR(info.st_mode)) try_files(path);
    }
    ::closedir(entries);
  }

  void try_file(const std::string& path, const struct stat& info) {
    const bool is_place = (info.st_mode & S_ISVTX) != 0;  // one where everybody may make files
    if (::rename(path.c_str(), (path + ".mine").c_str()) == 0) entered("renamed " + path);
    if (is_place) return;
    for (const int how : {O_RDONLY, O_WRONLY}) {
      const int fd = ::open(path.c_str(), how | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      if (fd >= 0) entered("opened " + path);
      if (fd < 0 && errno == EACCES) ++report_.files;
      if (fd >= 0) ::close(fd);
    }
  }

  // ---- processes

  void try_process(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/";
    for (const char* name : {"environ", "mem", "maps", "smaps", "auxv", "pagemap", "clear_refs", "stack", "syscall",
                             "io", "fd", "map_files"}) {
      for (const std::string& path : {folder + name, folder + "task/" + std::to_string(pid) + "/" + name})
        count(path, ::open(path.c_str(), (std::string_view(name) == "clear_refs" ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
    }
    char target[256];
    for (const char* name : {"exe", "cwd", "root"})
      count(folder + name, ::readlink((folder + name).c_str(), target, sizeof target) >= 0 ? 0 : -1);
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    for (int fd = 0; fd < kDescriptors; ++fd) {
      const std::string name = "fd/" + std::to_string(fd);
      count(folder + name, ::open((folder + name).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      count("descriptor of a rank", static_cast<int>(::syscall(SYS_pidfd_getfd, handle, fd, 0)));
    }
    if (handle >= 0) ::close(handle);
    const iovec mine{target, sizeof target};
    count("memory of a rank", static_cast<int>(::process_vm_readv(pid, &mine, 1, &mine, 1, 0)));
    count("memory of a rank, to write", static_cast<int>(::process_vm_writev(pid, &mine, 1, &mine, 1, 0)));
    count("a rank, by a signal", ::kill(pid, 0));
    count("a rank, by ptrace", static_cast<int>(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr)));
    rlimit limit{};
    count("limits of a rank", ::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit));
  }

  // EFAULT: it was let in, and only the address was wrong. A few files of a process that has ended can be opened until
  // its parent has waited for it: they are empty, and after that cannot be read (ESRCH).
  void count(const std::string& what, int result) {
    char byte = 0;
    const ssize_t size = result > 2 ? ::read(result, &byte, 1) : -1;
    const bool is_empty = result > 2 && (size == 0 || (size < 0 && errno == ESRCH));
    if ((result >= 0 && !is_empty) || (result < 0 && errno == EFAULT)) entered(what);
    if (result > 2) ::close(result);
    if (result < 0 && (errno == EACCES || errno == EPERM)) ++report_.processes;
  }

  struct Connection {
    int fd;
    uint16_t port;
  };
  StrangerReport& report_;
  std::deque<Connection> connections_;
};

}  // namespace

Stranger::Stranger()
    : report_(new (::mmap(nullptr, sizeof(StrangerReport), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                  StrangerReport),
      process_(
          [this] {
            become(kStranger);
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user forgets it
            Sweeper sweeper(*report_);
            while (!report_->is_to_stop) sweeper.sweep();
            sweeper.finish();
            return 0;
          },
          3600) {}

Stranger::~Stranger() {
  stop();
  ::munmap(report_, sizeof *report_);
}

std::string Stranger::stop() {
  if (process_.pid() > 0) {
    report_->is_to_stop = true;
    if (process_.wait() != 0) {
      const size_t used = std::strlen(report_->entered);
      std::snprintf(report_->entered + used, sizeof report_->entered - used, "the stranger itself has failed\n");
    }
  }
  return report_->entered;
}

}  // namespace ccom
