// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <omp.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "types.h"

namespace ccom_torch {
namespace {

using Milliseconds = Communicator::Milliseconds;

// A store may serve several generations of a group: each has its own key. All ranks count in the same way.
std::string key_of_this_time(c10d::Store& store, int rank) {
  return "ccom/id/" + std::to_string(store.add("ccom/times/" + std::to_string(rank), 1));
}

// Whoever holds the id can join, and whoever can connect to the store can read it: it is to be gone once nobody needs
// it. A store that cannot delete keeps an empty value.
void forget(c10d::Store& store, const std::string& key) {
  try {
    store.set(key, std::vector<uint8_t>());
    store.deleteKey(key);
  } catch (const std::exception&) {  // the store has gone, or cannot delete
  }
}

ccomUniqueId exchange_id(c10d::Store& store, const std::string& key, int rank, Milliseconds timeout,
                         const std::string& name, Interrupt& interrupt) {
  ccomUniqueId id;
  if (rank == 0) {
    check(ccomGetUniqueId(&id), nullptr);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
    store.set(key, std::vector<uint8_t>(bytes, bytes + sizeof(id)));
    return id;
  }
  try {
    wait_for_key(store, key, timeout, interrupt);
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const std::exception& cause) {
    raise("ccom start: rank 0 of group '" + name + "' has not written the communicator's id to the store within " +
          std::to_string(timeout.count()) + " ms (rank " + std::to_string(rank) + " waits for it): " + cause.what());
  }
  const std::vector<uint8_t> bytes = store.get(key);
  TORCH_CHECK(bytes.size() == sizeof(id), "ccom start: the store holds ", bytes.size(), " bytes under ", key);
  std::memcpy(&id, bytes.data(), sizeof(id));
  return id;
}

void name_queue_thread(void*, ccomResult_t) {
  // The copies of an operation do not justify a thread team that competes with the computation's.
  omp_set_num_threads(1);
}

struct Job {
  std::function<void()> run;
  std::atomic<int>* pending;
};

void run_job(void* user, ccomResult_t) {
  const std::unique_ptr<Job> job(static_cast<Job*>(user));
  job->run();
  job->run = nullptr;
  job->pending->fetch_sub(1, std::memory_order_release);
}

}  // namespace

void wait_for_key(c10d::Store& store, const std::string& key, Milliseconds timeout, Interrupt& interrupt) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (Milliseconds pause(1); !store.check({key}); pause = std::min(2 * pause, 2 * Interrupt::kInterval)) {
    if (interrupt.look()) interrupt.rethrow();
    const auto left = std::chrono::ceil<Milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= Milliseconds(0)) raise("the key is not in the store after " + std::to_string(timeout.count()) + " ms");
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

Communicator::Communicator(c10d::Store& store, int rank, int size, Milliseconds timeout, const std::string& name)
    : timeout_ms_(timeout.count()) {
  const std::string interface = interface_towards_master();
  const std::string key = key_of_this_time(store, rank);
  const ccomUniqueId id = exchange_id(store, key, rank, timeout, name, *interrupt_);
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.commName = name.c_str();
  config.timeoutMs = config.initTimeoutMs = timeout.count();
  config.messages = 1;
  config.interrupted = [](void* user) { return static_cast<Interrupt*>(user)->look() ? 1 : 0; };
  config.interruptedUser = interrupt_.get();
  if (!interface.empty()) config.ifname = interface.c_str();
  try {
    check(ccomCommInitRankConfig(&comm_, size, id, rank, &config), nullptr);
  } catch (const CallFailed& failure) {
    interrupt_->rethrow();
    raise("ccom start of group '" + name + "' (rank " + std::to_string(rank) + " of " + std::to_string(size) +
          "): " + failure.what());
  }
  if (rank == 0) forget(store, key);  // all ranks have joined
}

Communicator::~Communicator() {
  close(Milliseconds(0), [](ccomComm_t) {});
}

Communicator::Use::Use(Communicator& communicator) : communicator_(communicator) {
  communicator.in_use_.fetch_add(1, std::memory_order_seq_cst);
  if (!communicator.closing_.load(std::memory_order_seq_cst)) return;
  communicator.in_use_.fetch_sub(1, std::memory_order_release);
  raise("ccom: the process group has been shut down");
}

Communicator::Use::~Use() { communicator_.in_use_.fetch_sub(1, std::memory_order_release); }

void Communicator::set_timeout(Milliseconds timeout) {
  if (timeout_ms_.exchange(timeout.count(), std::memory_order_relaxed) == timeout.count()) return;
  check(ccomCommSetTimeout(comm_, timeout.count()), comm_);
}

void Communicator::post(std::function<void()> job) {
  const Use use(*this);
  std::lock_guard lock(queue_mutex_);
  if (queue_ == nullptr) {
    check(ccomStreamCreate(&queue_), nullptr);
    check(ccomStreamAddCallback(queue_, name_queue_thread, nullptr), nullptr);
  }
  pending_.fetch_add(1, std::memory_order_relaxed);
  check(ccomStreamAddCallback(queue_, run_job, new Job{std::move(job), &pending_}), nullptr);
}

bool Communicator::drain(Milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!is_idle()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void Communicator::abort() {
  std::lock_guard lock(close_mutex_);
  if (comm_ != nullptr) ccomCommAbort(comm_);
}

void Communicator::close(Milliseconds timeout, const std::function<void(ccomComm_t)>& last) {
  if (!closing_.load(std::memory_order_acquire)) drain(timeout);
  closing_.store(true, std::memory_order_seq_cst);
  std::lock_guard lock(close_mutex_);
  if (comm_ == nullptr) return;
  if (!is_idle() || in_use_.load(std::memory_order_seq_cst) > 0) ccomCommAbort(comm_);
  if (queue_ != nullptr) ccomStreamDestroy(queue_);
  queue_ = nullptr;
  while (in_use_.load(std::memory_order_seq_cst) > 0) std::this_thread::yield();
  last(comm_);
  ccomCommDestroy(comm_);
  comm_ = nullptr;
}

ccomResult_t Communicator::error() {
  std::lock_guard lock(close_mutex_);
  ccomResult_t result = ccomSuccess;
  if (comm_ != nullptr) ccomCommGetAsyncError(comm_, &result);
  return result;
}

}  // namespace ccom_torch
