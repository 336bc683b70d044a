// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <omp.h>
#include <sched.h>

#include <memory>

#include "types.h"

namespace ccom_torch {
namespace {

// Of this thread, where it is the application's.
thread_local bool is_helping = false;

struct Job {
  std::function<void()> run;
  std::atomic<int>* pending;
};

// The copies of an operation do not justify a thread team that competes with the computation's.
void set_up_own_thread() {
  thread_local const bool once = (omp_set_num_threads(1), true);
  (void)once;
}

void run_job(void* user, ccomResult_t) {
  if (!is_helping) set_up_own_thread();
  const std::unique_ptr<Job> job(static_cast<Job*>(user));
  job->run();
  job->run = nullptr;
  job->pending->fetch_sub(1, std::memory_order_release);
}

}  // namespace

void Queue::post(std::function<void()> job) {
  std::lock_guard lock(mutex_);
  ccomStream_t stream = stream_.load(std::memory_order_relaxed);
  if (stream == nullptr) {
    check(ccomStreamCreate(&stream), nullptr);
    stream_.store(stream, std::memory_order_release);
  }
  auto posted = std::make_unique<Job>(Job{std::move(job), &pending_});
  pending_.fetch_add(1, std::memory_order_relaxed);
  const ccomResult_t result = ccomStreamAddCallback(stream, run_job, posted.get());
  if (result == ccomSuccess) {
    (void)posted.release();  // run_job() has it
  } else {
    pending_.fetch_sub(1, std::memory_order_relaxed);
    check(result, nullptr);
  }
}

bool Queue::run_next() {
  int ran = 0;
  helpers_.fetch_add(1, std::memory_order_seq_cst);
  const ccomStream_t stream = stream_.load(std::memory_order_acquire);
  if (stream != nullptr && !closed_.load(std::memory_order_seq_cst)) {
    is_helping = true;
    (void)ccomStreamRunNext(stream, &ran);
    is_helping = false;
  }
  helpers_.fetch_sub(1, std::memory_order_release);
  return ran != 0;
}

void Queue::close() {
  closed_.store(true, std::memory_order_seq_cst);
  while (helpers_.load(std::memory_order_seq_cst) > 0) ::sched_yield();
  std::lock_guard lock(mutex_);
  if (const ccomStream_t stream = stream_.exchange(nullptr, std::memory_order_relaxed)) ccomStreamDestroy(stream);
}

}  // namespace ccom_torch
