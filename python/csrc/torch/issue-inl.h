// SPDX-License-Identifier: Apache-2.0
//
// Issues and runs operations.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include "../common/call_site.h"
#include "process_group.h"
#include "profiler.h"

namespace ccom_torch {

// Runs `collective(const Member&)`, which may throw, and completes `work`.
template <typename Fn>
void ProcessGroup::run(const c10::intrusive_ptr<Work>& work, FlightRecorder::Ticket ticket, Milliseconds timeout,
                       size_t bytes, const char* site, Fn& collective) {
  const Work::Clock::time_point started = Work::Clock::now();
  recorder_->started(ticket);
  std::exception_ptr error;
  try {
    const Communicator::Use use(communicator());
    const at::NoGradGuard no_grad;
    communicator().set_timeout(timeout);
    ccomSetCallSite(site);
    collective(Member{use.comm(), rank_, size_});
  } catch (...) {
    error = explained(std::current_exception(), call_name(work->type()), work->sequence());
  }
  work->set_span(started, Work::Clock::now());
  finish(work, ticket, bytes, std::move(error));
}

template <typename Fn>
ProcessGroup::WorkPtr ProcessGroup::issue(const Call& call, Fn collective) {
  const Milliseconds timeout = timeout_or_default(call.timeout);
  const bool is_profiled = at::hasCallbacks();
  const char* const site = ccom_python::call_site_of_python();
  const char* const title = event_title(call.title);
  std::unique_lock order(issue_mutex_);
  const uint64_t sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (is_profiled) tell_profiler(call, sequence);
  const FlightRecorder::Ticket ticket =
      recorder_->collective(title, sequence, call.inputs, call.outputs, timeout.count());
  auto work =
      c10::make_intrusive<Work>(rank_, call.type, is_profiled ? title : nullptr, call.inputs, call.outputs, sequence);
  work->set_interrupt(communicator().interrupt());
  std::shared_ptr<std::atomic<uint64_t>> waited(statistics_, &statistics_->of(call.type).waited_nanoseconds);
  const char* explained = is_profiled ? call.collective : nullptr;
  auto profiled = [explained, collective, count_bytes = call.count_bytes](const Member& member) {
    const AlgorithmRecord record(member.comm, explained, count_bytes);
    collective(member);
  };
  if (!call.is_async && communicator().is_idle()) {
    order.unlock();
    run(work, ticket, timeout, call.bytes, site, profiled);
    waited->fetch_add(static_cast<uint64_t>((work->ended() - work->started()).count()), std::memory_order_relaxed);
    return work;
  }
  work->count_waiting_in(std::move(waited));
  if (is_profiled) work->keep_thread_state();
  work->set_queue(communicator().queue());
  communicator().post([this, work, ticket, timeout, bytes = call.bytes, site, profiled,
                       is_inference = c10::InferenceMode::is_enabled()]() mutable {
    work->with_thread_state([&] {
      const c10::InferenceMode inference(is_inference);
      run(work, ticket, timeout, bytes, site, profiled);
    });
  });
  coalesce(work);
  return work;
}

}  // namespace ccom_torch
