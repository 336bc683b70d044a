// SPDX-License-Identifier: Apache-2.0
//
// One rank that may run out of memory (failing_malloc.cc): joins, calls, leaves, and says "ended CODE LEFT TEXT": the
// first error, 0 if there was none, and how many calls of malloc were left before one would have failed.
#include <ccom/ccom.h>
#include <dlfcn.h>
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

}  // namespace

int main() {
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
  if (arm != nullptr) arm();
  ccomResult_t result = ccomUniqueIdFromUrl("env://", nranks, rank, &id);
  if (result == ccomSuccess) result = ccomCommInitRankConfig(&comm, nranks, id, rank, &config);
  if (result == ccomSuccess) result = calls(comm, data);
  char why[512] = "";
  if (result != ccomSuccess) std::snprintf(why, sizeof why, "%s", ccomGetLastError(nullptr));
  if (comm != nullptr) ccomCommDestroy(comm);
  const long left = disarm != nullptr ? disarm() : -1;
  char text[640];
  std::snprintf(text, sizeof text, "ended %d %ld %s\n", static_cast<int>(result), left, why);
  return ::write(STDOUT_FILENO, text, std::strlen(text)) > 0 ? 0 : 9;
}
