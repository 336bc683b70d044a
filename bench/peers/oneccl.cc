// SPDX-License-Identifier: Apache-2.0
//
// oneCCL on host memory as bench/compare measures it. Ranks find each other through a file next to the sync file.
//
// It is linked with the archive of the package for processors without SYCL: the shared library beside it needs another
// one that only the SYCL package has. The archive calls tracing functions through pointers; null: there is no tracer.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <oneapi/ccl.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "measure.h"

extern "C" {
void* __itt_domain_create_ptr__3_0 = nullptr;
void* __itt_event_create_ptr__3_0 = nullptr;
void* __itt_event_end_ptr__3_0 = nullptr;
void* __itt_event_start_ptr__3_0 = nullptr;
void* __itt_metadata_add_ptr__3_0 = nullptr;
void* __itt_string_handle_create_ptr__3_0 = nullptr;
void* __itt_task_begin_ptr__3_0 = nullptr;
void* __itt_task_end_ptr__3_0 = nullptr;
void* __itt_thread_set_name_ptr__3_0 = nullptr;
}

namespace {

std::optional<ccl::communicator> communicator;

int call(measure_collective collective, const float* send, float* recv, size_t count) {
  switch (collective) {
    case MEASURE_ALLREDUCE: ccl::allreduce(send, recv, count, ccl::reduction::sum, *communicator).wait(); return 0;
    case MEASURE_ALLGATHER: ccl::allgather(send, recv, count, ccl::datatype::float32, *communicator).wait(); return 0;
    case MEASURE_REDUCE_SCATTER:
      ccl::reduce_scatter(send, recv, count, ccl::reduction::sum, *communicator).wait();
      return 0;
    case MEASURE_BROADCAST: ccl::broadcast(recv, count, 0, *communicator).wait(); return 0;
    case MEASURE_ALLTOALL: ccl::alltoall(send, recv, count, *communicator).wait(); return 0;
    case MEASURE_REDUCE: ccl::reduce(send, recv, count, ccl::reduction::sum, 0, *communicator).wait(); return 0;
    case MEASURE_GATHER:
    case MEASURE_SCATTER: break;  // it has none
  }
  return 1;
}

// Rank 0 writes the address and renames the file; the others wait for the name.
std::shared_ptr<ccl::kvs> connect(int rank) {
  const std::string path = std::string(std::getenv("COMPARE_SYNC")) + ".kvs";
  if (rank == 0) {
    auto kvs = ccl::create_main_kvs();
    const ccl::kvs::address_type address = kvs->get_address();
    std::ofstream(path + ".new", std::ios::binary).write(address.data(), static_cast<std::streamsize>(address.size()));
    if (std::rename((path + ".new").c_str(), path.c_str()) != 0) throw std::runtime_error("rename " + path);
    return kvs;
  }
  ccl::kvs::address_type address;
  for (int tries = 0; tries < 3000; ++tries) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(address.data(), static_cast<std::streamsize>(address.size()))) return ccl::create_kvs(address);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("no address in " + path);
}

}  // namespace

int main() {
  int rank = 0;
  int ranks = 0;
  measure_launch(&rank, &ranks);
  try {
    ccl::init();
    communicator.emplace(ccl::create_communicator(ranks, rank, connect(rank)));
    const auto number = ccl::get_library_version();
    const std::string version =
        std::to_string(number.major) + "." + std::to_string(number.minor) + "." + std::to_string(number.update);
    measure_peer peer{};
    peer.version = version.c_str();
    peer.call = call;
    const int outcome = measure_run(&peer, rank, ranks);
    communicator.reset();
    return outcome;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
}
