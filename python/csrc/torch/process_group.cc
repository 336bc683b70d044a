// SPDX-License-Identifier: Apache-2.0
//
// The life cycle of a process group; operations are in operations.cc and messages.cc.
#include "process_group.h"

#include <Python.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "completions.h"
#include "mapped_memory.h"
#include "types.h"

namespace ccom_torch {
namespace {

// Timeout for pending operations when their group is destroyed without a shutdown.
constexpr std::chrono::seconds kGrace{10};

struct Registry {
  std::mutex mutex;
  std::set<ProcessGroup*> groups;
};

// Never destroyed: groups may outlive static destruction.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// Closing waits for threads that may need Python's GIL.
template <typename Fn>
void without_python(Fn fn) {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    PyThreadState* const state = PyEval_SaveThread();
    fn();
    PyEval_RestoreThread(state);
  } else {
    fn();
  }
}

std::function<void()>& failure_hook() {
  static auto* hook = new std::function<void()>;
  return *hook;
}

// WorkInfo's clock differs between torch versions.
using InfoTime = decltype(c10d::WorkInfo::timeStarted);
InfoTime info_time(Work::Clock::time_point time) {
  return InfoTime::clock::now() + std::chrono::duration_cast<InfoTime::duration>(time - Work::Clock::now());
}

// Older torch versions lack these option members.
template <typename Options>
std::string name_in(const Options& options) {
  if constexpr (requires { options.group_name; }) {
    return options.group_name;
  } else {
    return "";
  }
}

template <typename Options>
std::vector<uint64_t> global_ranks_in(const Options& options) {
  if constexpr (requires { options.global_ranks_in_group; }) {
    return options.global_ranks_in_group;
  } else {
    return {};
  }
}

c10::intrusive_ptr<c10d::Store> in_generation(const std::string& generation, c10::intrusive_ptr<c10d::Store> store) {
  if (generation.empty()) return store;
  return c10::make_intrusive<c10d::PrefixStore>(generation, std::move(store));
}

template <typename Options>
void describe_group(Options& options, const std::string& name, const std::vector<uint64_t>& ranks) {
  if constexpr (requires { options.global_ranks_in_group; }) {
    options.group_name = name;
    options.global_ranks_in_group = ranks;
  }
}

}  // namespace

c10::intrusive_ptr<ProcessGroup> ProcessGroup::create(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                                      Milliseconds timeout, const std::string& name,
                                                      const std::vector<int64_t>& global_ranks, bool is_default,
                                                      bool stands_for_gloo, bool waits_for_reconfigure) {
  auto options = c10::make_intrusive<OptionsLikeGloo>("ccom", timeout);
  std::vector<uint64_t> ranks(global_ranks.begin(), global_ranks.end());
  describe_group(*options, name, ranks);
  c10::intrusive_ptr<ProcessGroup> group;
  if (waits_for_reconfigure) {
    auto none = std::make_unique<Communicator>("this process group has no members before reconfigure() is called");
    group = c10::make_intrusive<ProcessGroup>(std::move(store), rank, size, std::move(options), name, std::move(ranks),
                                              nullptr, std::move(none));
  } else {
    group = c10::make_intrusive<ProcessGroup>(std::move(store), rank, size, std::move(options), name, std::move(ranks));
  }
  std::lock_guard lock(registry().mutex);
  group->is_default_ = is_default;
  group->stands_for_gloo_ = stands_for_gloo;
  return group;
}

const char* ProcessGroup::event_title(const char* own) const {
  if (!stands_for_gloo_) return own;
  static std::mutex mutex;
  static auto* const titles = new std::set<std::string>;
  std::lock_guard lock(mutex);
  return titles->insert("gloo" + std::string(std::strchr(own, ':'))).first->c_str();
}

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                           c10::intrusive_ptr<Options> options)
    : ProcessGroup(std::move(store), rank, size, options, name_in(*options), global_ranks_in(*options)) {}

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                           c10::intrusive_ptr<Options> options, std::string name, std::vector<uint64_t> global_ranks,
                           Communicator::FindWhole find_whole, std::unique_ptr<Communicator> communicator)
    : Backend(rank, size),
      store_(std::move(store)),
      origin_(store_),
      options_(std::move(options)),
      name_(name.empty() ? "torch" : std::move(name)),
      global_ranks_(std::move(global_ranks)) {
  if (find_whole == nullptr) find_whole = [this](uint64_t number) { return in_default(number); };
  if (communicator == nullptr)
    communicator = std::make_unique<Communicator>(*store_, rank, size, options_->timeout, name_, find_whole);
  use(std::move(communicator));
  enter_registry();
}

void ProcessGroup::use(std::unique_ptr<Communicator> communicator) {
  communicators_.push_back(std::move(communicator));
  current_.store(communicators_.back().get(), std::memory_order_release);
}

void ProcessGroup::enter_registry() {
  init();
  std::lock_guard lock(registry().mutex);
  registry().groups.insert(this);
}

// The default group, whose ranks are the global ones; ranks may be threads of one process. During the constructor.
std::unique_ptr<Communicator::Whole> ProcessGroup::in_default(uint64_t number) const {
  const auto rank = static_cast<size_t>(rank_);
  if (global_ranks_.size() != static_cast<size_t>(size_)) return nullptr;
  const std::vector<int> members(global_ranks_.begin(), global_ranks_.end());
  std::lock_guard lock(registry().mutex);
  for (ProcessGroup* group : registry().groups) {
    if (!group->is_default_ || group->rank_ != members[rank] || group->communicator().is_closed()) continue;
    if (number != 0 ? group->communicator().number() != number : !group->has_all(members)) continue;
    return std::make_unique<Communicator::Whole>(group->communicator(), members);
  }
  return nullptr;
}

// And works.
bool ProcessGroup::has_all(const std::vector<int>& ranks) {
  return std::ranges::all_of(ranks, [this](int rank) { return rank >= 0 && rank < size_; }) &&
         communicator().error() == ccomSuccess;
}

ProcessGroup::~ProcessGroup() {
  {
    std::lock_guard lock(registry().mutex);
    registry().groups.erase(this);
  }
  close(kGrace);
}

void ProcessGroup::abort() { communicator().abort(); }

void ProcessGroup::shutdown() { close(options_->timeout); }

void ProcessGroup::close(Milliseconds timeout) {
  without_python([&] { communicator().close(timeout, [this](ccomComm_t comm) { buckets_.release(comm); }); });
}

void close_all_groups() {
  without_python([] {
    std::lock_guard lock(registry().mutex);
    for (ProcessGroup* group : registry().groups) group->close(kGrace);
    drain_completions(1);
  });
}

void set_failure_hook(std::function<void()> hook) { failure_hook() = std::move(hook); }

const char* call_name(c10d::OpType type) {
  switch (type) {
    case c10d::OpType::BROADCAST: return "broadcast";
    case c10d::OpType::ALLREDUCE: return "all_reduce";
    case c10d::OpType::ALLREDUCE_COALESCED: return "all_reduce_coalesced";
    case c10d::OpType::REDUCE: return "reduce";
    case c10d::OpType::ALLGATHER:
    case c10d::OpType::_ALLGATHER_BASE: return "all_gather";
    case c10d::OpType::ALLGATHER_COALESCED: return "all_gather_coalesced";
    case c10d::OpType::GATHER: return "gather";
    case c10d::OpType::SCATTER: return "scatter";
    case c10d::OpType::REDUCE_SCATTER:
    case c10d::OpType::_REDUCE_SCATTER_BASE: return "reduce_scatter";
    case reduce_scatter_coalesced(): return "reduce_scatter_coalesced";
    case c10d::OpType::ALLTOALL:
    case c10d::OpType::ALLTOALL_BASE: return "all_to_all";
    case c10d::OpType::SEND: return "send";
    case c10d::OpType::RECV: return "recv";
    case c10d::OpType::RECVANYSOURCE: return "recv from any source";
    case c10d::OpType::BARRIER: return "barrier";
    default: return "operation";
  }
}

std::exception_ptr ProcessGroup::explained(std::exception_ptr cause, const char* operation, uint64_t sequence) const {
  try {
    std::rethrow_exception(cause);
  } catch (const CallFailed& failure) {
    std::string reason = failure.what();
    if (reason.starts_with(name_ + ": ")) reason.erase(0, name_.size() + 2);  // repeated below
    std::string text = std::string("ccom ") + operation + " (operation " + std::to_string(sequence) + " of group '" +
                       name_ + "', rank " + std::to_string(rank_) + " of " + std::to_string(size_) + "): " + reason;
    for (int i = 0; i < std::min(failure.info().nPeers, CCOM_MAX_ERROR_PEERS); ++i) {
      const auto peer = static_cast<size_t>(failure.info().peers[i]);
      if (peer >= global_ranks_.size() || global_ranks_[peer] == peer) continue;
      text += "; rank " + std::to_string(peer) + " here is global rank " + std::to_string(global_ranks_[peer]);
    }
    try {
      raise(text);
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return cause;
  }
}

ProcessGroup::Milliseconds ProcessGroup::timeout_or_default(Milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout || timeout.count() <= 0 ? options_->timeout : timeout;
}

void ProcessGroup::tell_profiler(const Call& call, uint64_t sequence) const {
  const auto elements = [](const Tensors& tensors) {
    int64_t sum = 0;
    for (const at::Tensor& tensor : tensors) sum += tensor.numel();
    return sum;
  };
  const Tensors& typed = call.inputs.empty() ? call.outputs : call.inputs;
  const int first = global_ranks_.empty() ? 0 : static_cast<int>(global_ranks_.front());
  const int stride = global_ranks_.size() < 2 ? 1 : static_cast<int>(global_ranks_[1] - global_ranks_[0]);
  RECORD_PARAM_COMMS_DATA(std::make_tuple(static_cast<int64_t>(sequence), false), std::make_tuple(name_, pg_desc_),
                          call.inputs, call.outputs, rank_, call.name, elements(call.inputs), elements(call.outputs),
                          typed.empty() ? at::kByte : typed.front().scalar_type(), std::vector<int64_t>(),
                          std::vector<int64_t>(), first, stride, size_);
}

void ProcessGroup::finish(const c10::intrusive_ptr<Work>& work, FlightRecorder::Ticket ticket, size_t bytes,
                          std::exception_ptr error) {
  const auto taken = work->ended() - work->started();
  Statistics::Counters& counters = statistics_->of(work->type());
  counters.count.fetch_add(1, std::memory_order_relaxed);
  counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
  counters.nanoseconds.fetch_add(static_cast<uint64_t>(taken.count()), std::memory_order_relaxed);
  recorder_->ended(ticket, error == nullptr);
  if (error != nullptr) abort_hooks_.call();
  if (error != nullptr && !has_failed_.exchange(true) && failure_hook() != nullptr) complete_elsewhere(failure_hook());
  const bool is_good = error == nullptr;
  work->complete(std::move(error));
  if (is_good)
    tell_completed(*completion_hooks_, work->getCompletionKey(),
                   std::chrono::duration<float, std::milli>(taken).count());
  if (onCompletionHook_ == nullptr) return;
  auto info = std::make_shared<c10d::WorkInfo>(work->type(), work->sequence(), info_time(work->started()),
                                               info_time(work->ended()), taken);
  complete_elsewhere([hook = onCompletionHook_, info = std::move(info)] { hook(info); });
}

void ProcessGroup::registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) {
  TORCH_CHECK(onCompletionHook_ == nullptr, "ccom: this process group has a completion hook already");
  onCompletionHook_ = std::move(hook);
}

void ProcessGroup::waitForPendingWorks() {
  communicator().drain(options_->timeout);
  drain_completions(std::chrono::duration<double>(options_->timeout).count());
}

at::Tensor ProcessGroup::allocateTensor(long size, at::TensorOptions options) { return mapped_tensor(size, options); }

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  TORCH_CHECK(place != ranks.end(), "ccom split: rank ", rank_, " of group '", name_, "' is not in the list of ranks");
  const auto part_of_this = [this, &ranks](uint64_t number) {
    const bool is_this = number == 0 ? communicator().error() == ccomSuccess : number == communicator().number();
    return is_this ? std::make_unique<Communicator::Whole>(communicator(), ranks) : nullptr;
  };
  return c10::make_intrusive<ProcessGroup>(in_generation(generation_, store), static_cast<int>(place - ranks.begin()),
                                           static_cast<int>(ranks.size()), options, name_in(*options),
                                           global_ranks_in(*options), part_of_this);
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const c10::intrusive_ptr<Options>& options, const int& rank,
                                                      const int& size) {
  return c10::make_intrusive<ProcessGroup>(store, rank, size, options);
}

#if CCOM_TORCH_VERSION >= 207
c10d::ErrorType ProcessGroup::getError() {
  switch (communicator().error()) {
    case ccomSuccess: return c10d::ErrorType::SUCCESS;
    case ccomTimeout: return c10d::ErrorType::TIMEOUT;
    case ccomRemoteError: return c10d::ErrorType::REMOTE_ERROR;
    default: return c10d::ErrorType::COMM_ERROR;
  }
}
#endif

}  // namespace ccom_torch
