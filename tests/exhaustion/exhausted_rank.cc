// SPDX-License-Identifier: Apache-2.0
//
// One rank that may run out of memory (failing_malloc.cc): joins, says "met", calls, leaves, and says
// "ended CODE LEFT TEXT": the first error, 0 if there was none, and how many calls of malloc were left before one would
// have failed; "open WHAT" for each file or socket that is open and was not before, but for the process's arena.
#include <ccom/ccom.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

ccomResult_t calls(ccomComm_t comm, std::vector<float>& data) {
  ccomResult_t result = ccomSuccess;
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{100'000}, data.size()}) {
    if (result == ccomSuccess)
      result = ccomAllReduce(data.data(), data.data(), count, ccomFloat32, ccomMax, comm, nullptr);
    if (result == ccomSuccess) result = ccomBroadcast(data.data(), data.data(), count, ccomFloat32, 1, comm, nullptr);
  }
  void* mapped = nullptr;
  if (result == ccomSuccess) result = ccomMemAlloc(&mapped, 1 << 20);
  if (result == ccomSuccess) result = ccomAllReduce(mapped, mapped, (1 << 20) / 4, ccomInt32, ccomSum, comm, nullptr);
  if (mapped != nullptr) ccomMemFree(mapped);
  ccomStream_t stream = nullptr;
  if (result == ccomSuccess) result = ccomStreamCreate(&stream);
  if (result == ccomSuccess) result = ccomAllReduce(data.data(), data.data(), 100, ccomFloat32, ccomMax, comm, stream);
  if (stream != nullptr) {
    const ccomResult_t finished = ccomStreamSynchronize(stream, -1);
    if (result == ccomSuccess) result = finished;
    ccomStreamDestroy(stream);
  }
  if (result == ccomSuccess) result = ccomBarrier(comm, nullptr);
  return result;
}

void say(const char* text) {
  if (::write(STDOUT_FILENO, text, std::strlen(text)) < 0) std::_Exit(9);
}

constexpr int kMostFiles = 256;
bool was_open[kMostFiles];

// Counts what is open and was not before, and says it. Without what gRPC keeps to wake its threads,
// anon_inode:[eventpoll] and [eventfd], and one memfd, the process's arena. Of C, since the names of templates here
// could take the place of those in libraries, in whose functions deaths are looked for.
int newly_open(bool says) {
  int found = 0;
  bool has_arena = false;
  for (int fd = 0; fd < kMostFiles; ++fd) {
    char path[32], what[256] = "", text[320];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (was_open[fd] || ::readlink(path, what, sizeof what - 1) <= 0) continue;
    const bool is_arena = !has_arena && std::strncmp(what, "/memfd:ccom", 11) == 0;
    has_arena |= is_arena;
    if (is_arena || std::strncmp(what, "anon_inode:", 11) == 0) continue;
    ++found;
    std::snprintf(text, sizeof text, "open %d %s\n", fd, what);
    if (says) say(text);
  }
  return found;
}

// gRPC closes its sockets a moment later; the rendezvous server, of which a rank could not say that it leaves it, 5 s
// after the time in which ranks may join. Only of who has met: after a failed start it stays for ranks that come late.
void say_left_open() {
  for (int look = 0; look < 1000 && newly_open(false) > 0; ++look) ::usleep(10'000);
  newly_open(true);
}

}  // namespace

int main() {
  ::dup2(STDOUT_FILENO, STDERR_FILENO);  // ccom's log too
  const auto arm = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "ccom_test_arm"));
  const auto disarm = reinterpret_cast<long (*)()>(::dlsym(RTLD_DEFAULT, "ccom_test_disarm"));
  const int rank = std::atoi(std::getenv("CCOM_RANK"));
  const int nranks = std::atoi(std::getenv("CCOM_NRANKS"));
  std::vector<float> data(1 << 20, 1.0F);
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 3000;
  config.initTimeoutMs = 3000;
  ccomUniqueId id;
  ccomComm_t comm = nullptr;
  for (int fd = 0; fd < kMostFiles; ++fd) was_open[fd] = ::fcntl(fd, F_GETFD) >= 0;
  if (arm != nullptr) arm();
  ccomResult_t result = ccomUniqueIdFromUrl("env://", nranks, rank, &id);
  if (result == ccomSuccess) result = ccomCommInitRankConfig(&comm, nranks, id, rank, &config);
  const bool has_met = result == ccomSuccess;
  if (has_met) {
    say("met\n");
    result = calls(comm, data);
  }
  char why[512] = "";
  if (result != ccomSuccess) std::snprintf(why, sizeof why, "%s", ccomGetLastError(nullptr));
  if (comm != nullptr) ccomCommDestroy(comm);
  const long left = disarm != nullptr ? disarm() : -1;
  char text[640];
  std::snprintf(text, sizeof text, "ended %d %ld %s\n", static_cast<int>(result), left, why);
  say(text);
  if (has_met) say_left_open();
  return 0;
}
