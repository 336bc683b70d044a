// SPDX-License-Identifier: Apache-2.0
//
// torch.distributed's backend "ccom".
//
// A synchronous operation runs in the caller's thread unless others are queued; all others run in issue order on one
// thread of the group. Sends and receives are independent of that order.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "buckets.h"
#include "collectives.h"
#include "communicator.h"
#include "flight_recorder.h"
#include "hooks.h"
#include "statistics.h"
#include "work.h"

namespace ccom_torch {

using c10d::AllgatherOptions;
using c10d::AllreduceCoalescedOptions;
using c10d::AllreduceOptions;
using c10d::AllToAllOptions;
using c10d::BarrierOptions;
using c10d::BroadcastOptions;
using c10d::GatherOptions;
using c10d::ReduceOptions;
using c10d::ReduceScatterOptions;
using c10d::ScatterOptions;

// Laid out as ProcessGroupGloo's.
struct OptionsLikeGloo final : c10d::Backend::Options {
  using Options::Options;
  explicit OptionsLikeGloo(const Options& other) : Options(other) {}
  virtual c10::intrusive_ptr<Options> clone() const { return c10::make_intrusive<OptionsLikeGloo>(*this); }
  std::vector<std::shared_ptr<void>> devices;
  int threads = 1;
};

// Thread-safe. Methods named as c10d::Backend's have the same meaning; differences are documented.
class ProcessGroup final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using TensorLists = std::vector<Tensors>;
  using Milliseconds = std::chrono::milliseconds;

  // Collective, blocking. `name` is for error texts.
  // is_default: its ranks are the global ones, and groups of some of them may become parts of it. stands_for_gloo:
  // events of the profiler and the flight recorder are called "gloo:all_reduce" instead of "ccom:all_reduce".
  // waits_for_reconfigure: not collective, returns at once; there is nothing to call before reconfigure().
  static c10::intrusive_ptr<ProcessGroup> create(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                                 Milliseconds timeout, const std::string& name,
                                                 const std::vector<int64_t>& global_ranks, bool is_default,
                                                 bool stands_for_gloo, bool waits_for_reconfigure);
  // Collective over the ranks of this default group and new ones, which call join(); blocking, for at most the group's
  // timeout. `store` and the new `key` are the same on all; `size`: of the group that is returned, where ranks keep
  // their numbers and new ones follow. Throws if not all have come in time: this group stays as it was, in any case.
  c10::intrusive_ptr<ProcessGroup> grow(c10::intrusive_ptr<c10d::Store> store, const std::string& key, int size);
  static c10::intrusive_ptr<ProcessGroup> join(c10::intrusive_ptr<c10d::Store> store, const std::string& key, int rank,
                                               int size, Milliseconds timeout, const std::string& name,
                                               bool stands_for_gloo);
  // The same as create(); name and global ranks come from the options, if this torch version has them there.
  ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, c10::intrusive_ptr<Options> options);
  ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, c10::intrusive_ptr<Options> options,
               std::string name, std::vector<uint64_t> global_ranks, Communicator::FindWhole find_whole = nullptr,
               std::unique_ptr<Communicator> communicator = nullptr);
  // Of the ranks that are left of `parent`; options: null for the parent's.
  ProcessGroup(const ProcessGroup& parent, const Communicator::Survivors& survivors,
               c10::intrusive_ptr<Options> options);
  // A default group of a communicator that there is.
  ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, c10::intrusive_ptr<Options> options,
               std::string name, bool stands_for_gloo, std::unique_ptr<Communicator> communicator);
  ~ProcessGroup() override;

  const std::string getBackendName() const override { return "ccom"; }

  WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const AllreduceCoalescedOptions& options) override;
  // allreduce with AVG, asynchronous, that also writes what this rank's encodings lose (ccomAllReduceResidual).
  WorkPtr average_with_residual(const at::Tensor& tensor, const at::Tensor& residual);
  // allreduce with AVG, asynchronous. Between hosts float32 tensors are rounded to bfloat16, and so are their averages.
  WorkPtr average_as_bfloat16(const at::Tensor& tensor);
  WorkPtr reduce(Tensors& tensors, const ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const AllToAllOptions& options) override;
  WorkPtr barrier(const BarrierOptions& options) override;
  // Uses the store, so that it works, and names missing ranks, even when ranks hang.
  void monitoredBarrier(const BarrierOptions& options, bool wait_all_ranks) override;

  // Tags must be 0 or more. A send is complete when its tensor may be modified.
  WorkPtr send(Tensors& tensors, int peer, int tag) override;
  WorkPtr recv(Tensors& tensors, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_.load(std::memory_order_relaxed); }

  // Operations in between are issued immediately, and combined into one work.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}  // always enabled
  bool supportsSplitting() const override { return true; }

  // Not in every torch version: no `override`.
  virtual bool supportsCoalescing() const { return true; }
  virtual c10::intrusive_ptr<Options> getBackendOptions() { return options_; }
  virtual void setTimeout(Milliseconds timeout) { options_->timeout = timeout; }
  virtual void abort();
  virtual void shutdown();
  virtual at::Tensor allocateTensor(long size, at::TensorOptions options);
  virtual bool supportsTensorAlloc(c10::DeviceIndex) { return true; }
  virtual c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                            const c10::intrusive_ptr<Options>& options);
  virtual c10::intrusive_ptr<Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                            const c10::intrusive_ptr<Options>& options, const int& rank,
                                            const int& size);
  virtual bool supportsShrinking() const { return true; }
  virtual c10::intrusive_ptr<Backend> shrink(const std::vector<int64_t>& ranks_to_exclude, int shrink_flags,
                                             const c10::intrusive_ptr<Options>& options);
#if CCOM_TORCH_VERSION >= 207
  virtual c10d::ErrorType getError();
#endif
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  bool supportsReconfigure() const override { return true; }
  // Names this process, always by the same text, to the others' reconfigure().
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  // Collective over the processes of these handles, whatever they were members of before: the position is the rank. A
  // set is ordered by ccom. Blocking, for at most the timeout; the work that is returned is complete. Ends what runs in
  // the group. Throws if not all have come in time, if the uuid was used before, or for wrong handles: then the group
  // is as it was. Nothing else may be called meanwhile. Hints are ignored.
  WorkPtr reconfigure(const c10d::ReconfigureOptions& options) override;
#endif
  virtual bool isInitialized() { return !communicator().is_closed(); }
  // A hook is called in the thread of the operation that fails, before whoever waits for it is told; once for each.
  virtual bool supportsAbortHooks() const { return true; }
  virtual void registerAbortHook(int64_t id, std::function<void()> hook) { abort_hooks_.add(id, std::move(hook)); }
  virtual void unregisterAbortHook(int64_t id) { abort_hooks_.remove(id); }
  virtual bool supportsCompletionHooks() const { return true; }
  virtual void registerCompletionHook(int64_t id, CompletionHooks::Hook hook) {
    completion_hooks_->add(id, std::move(hook));
  }
  virtual void unregisterCompletionHook(int64_t id) { completion_hooks_->remove(id); }
  // Gathers into one tensor, whose parts follow one another by rank; only looked at on the root.
  virtual WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const GatherOptions& options);

  // Ranks that have died, or are silent. Collective over the others, which all get the same, even after an error.
  std::vector<int> lost_ranks();
  // Values that must be equal on all ranks, as the next operation finds out. Waits for operations before it.
  void witness(const Tensors& tensors);
  // ccomCommInfo_t.bytesSent.
  uint64_t bytes_sent() { return communicator().bytes_sent(); }
  // ccomCommReport. Called with Python's lock.
  std::string report(bool as_json, bool of_host);

  const Statistics& statistics() const { return *statistics_; }
  const FlightRecorder& flight_recorder() const { return *recorder_; }
  const std::string& name() const { return name_; }
  // torch counts names of groups from 0 again when the default group has shrunk, and their ranks are others then: this
  // prefix keeps them from finding keys of earlier groups in the store. Empty before.
  const std::string& generation() const { return generation_; }
  c10::intrusive_ptr<Options> options() const { return options_; }
  bool stands_for_gloo() const { return stands_for_gloo_; }
  // Waits at most `timeout` for queued operations and aborts the rest. Idempotent.
  void close(Milliseconds timeout);

 private:
  void enter_registry();
  void use(std::unique_ptr<Communicator> communicator);
  Communicator& communicator() const { return *current_.load(std::memory_order_acquire); }
  void require_store();
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  c10::intrusive_ptr<c10d::Store> store_of(const std::string& handle, Milliseconds timeout);
#endif
  std::unique_ptr<Communicator::Whole> in_default(uint64_t number) const;
  bool has_all(const std::vector<int>& ranks);
  // Of events: "ccom:all_reduce" as users look for it. Lives as long as the process.
  const char* event_title(const char* own) const;

  // Description of a call, for profiler and recorder.
  struct Call {
    c10d::OpType type;
    const char* title;       // of the profiler's event
    const char* name;        // in the profiler's tools
    const char* collective;  // in ccomExplain; null: nothing to explain
    const Tensors& inputs;
    const Tensors& outputs;
    Milliseconds timeout;
    bool is_async;
    size_t bytes;        // size as in nccl-tests
    size_t count_bytes;  // count as in ccom
  };
  template <typename Fn>
  WorkPtr issue(const Call& call, Fn collective);
  template <typename Fn>
  void run(const c10::intrusive_ptr<Work>& work, FlightRecorder::Ticket ticket, Milliseconds timeout, size_t bytes,
           const char* site, Fn& collective);
  void finish(const c10::intrusive_ptr<Work>& work, FlightRecorder::Ticket ticket, size_t bytes,
              std::exception_ptr error);
  WorkPtr message(Tensors& tensors, int peer, int tag, c10d::OpType type);
  void coalesce(const c10::intrusive_ptr<Work>& work);
  Milliseconds timeout_or_default(Milliseconds timeout) const;
  // ccom's error as shown to torch's users: the operation, the group, and who is to blame.
  std::exception_ptr explained(std::exception_ptr cause, const char* operation, uint64_t sequence) const;
  void tell_profiler(const Call& call, uint64_t sequence) const;

  // Where the group's type is gloo, DDP's logger takes this object for ProcessGroupGloo, and reads the number of
  // threads in its options: these three have to come first, as there, and the options to have such a number.
  c10::intrusive_ptr<c10d::Store> store_;
  const c10::intrusive_ptr<c10d::Store> origin_;  // that it was made with
  c10::intrusive_ptr<Options> options_;
  const uint64_t own_number_ = new_number();  // of this object
  const std::string name_;
  std::vector<uint64_t> global_ranks_;  // by rank; may be empty
  bool is_default_ = false, stands_for_gloo_ = false;
  std::string generation_;  // prefix of the keys of groups that are made beside this one; empty: none
  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> monitored_{0};
  std::atomic<bool> has_failed_{false};
  const std::shared_ptr<Statistics> statistics_ = std::make_shared<Statistics>();
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
  Buckets buckets_;
  std::mutex issue_mutex_;  // numbers are assigned in call order
  std::mutex coalescing_mutex_;
  std::optional<std::vector<c10::intrusive_ptr<Work>>> coalesced_;  // guarded by coalescing_mutex_
  AbortHooks abort_hooks_;
  const std::shared_ptr<CompletionHooks> completion_hooks_ = std::make_shared<CompletionHooks>();
  std::atomic<Communicator*> current_{nullptr};  // the last one below
  // Earlier ones are closed; who has a reference may still ask them. Declared last: queues end first.
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

// torch's enumerator, if this version has it.
template <typename Type = c10d::OpType>
constexpr Type reduce_scatter_coalesced() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; }) {
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  } else {
    return Type::COALESCED;
  }
}

// "all_reduce"
const char* call_name(c10d::OpType type);

// Shuts down every remaining group of this process; for interpreter exit.
void close_all_groups();

// Called on another thread when a group fails for the first time.
void set_failure_hook(std::function<void()> hook);

}  // namespace ccom_torch
