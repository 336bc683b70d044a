// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/rank.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace ccom {
namespace {

constexpr unsigned char kCanary = 0xA5;

std::string peers_of(ccomComm_t comm) {
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  ccomGetErrorInfo(comm, &info);
  std::string peers;
  for (int i = 0; i < info.nPeers; ++i) peers += (i == 0 ? "" : ",") + std::to_string(info.peers[i]);
  return peers;
}

std::string describe_failure(ccomComm_t comm, ccomResult_t result) {
  return std::to_string(result) + " [" + peers_of(comm) + "] " + ccomGetLastError(nullptr);
}

}  // namespace

bool begin_rank() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ccomGetLaunch(&rank, &nranks, nullptr, nullptr) == ccomSuccess;
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(9);
}

void say_failure(ccomComm_t comm, ccomResult_t result) { say("failed " + describe_failure(comm, result)); }

int report_failure(ccomComm_t comm, ccomResult_t result) {
  say_failure(comm, result);
  ccomCommDestroy(comm);
  return 0;
}

void require(ccomComm_t comm, ccomResult_t result) {
  if (result != ccomSuccess) std::exit(report_failure(comm, result));
}

ccomComm_t join(const ccomConfig_t* config) {
  ccomUniqueId id;
  ccomComm_t comm = nullptr;
  ccomResult_t result = ccomUniqueIdFromUrl("env://", nranks, rank, &id);
  if (result == ccomSuccess) result = ccomCommInitRankConfig(&comm, nranks, id, rank, config);
  if (result == ccomSuccess) return comm;
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  ccomGetErrorInfo(nullptr, &info);
  say("init " + describe_failure(nullptr, result) + " (host '" + info.host + "')");
  std::exit(2);
}

void* allocate(const std::string& how, size_t bytes, ccomComm_t comm) {
  void* buffer = nullptr;
  void* handle = nullptr;
  if (how == "mapped") return ccomMemAlloc(&buffer, bytes) == ccomSuccess ? buffer : nullptr;
  static auto* const kept = new std::vector<void*>;  // used until the process ends, which is no leak
  buffer = kept->emplace_back(std::aligned_alloc(4096, bytes));
  if (how == "registered" && ccomCommRegister(comm, buffer, bytes, &handle) != ccomSuccess) return nullptr;
  return buffer;
}

void fill_canary(void* buffer, size_t bytes) { std::memset(buffer, kCanary, bytes); }

void watch_canary(const void* buffer, size_t bytes, int looks, int interval_ms) {
  size_t changed = 0;
  for (int look = 0; look < looks && changed == 0; ++look) {
    ::usleep(static_cast<useconds_t>(interval_ms) * 1000);
    const auto* const now = static_cast<const unsigned char*>(buffer);
    changed = static_cast<size_t>(std::count_if(now, now + bytes, [](unsigned char byte) { return byte != kCanary; }));
  }
  say(changed == 0 ? "kept" : "overwritten " + std::to_string(changed));
}

}  // namespace ccom
