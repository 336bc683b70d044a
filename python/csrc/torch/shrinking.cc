// SPDX-License-Identifier: Apache-2.0
//
// How the ranks that are left go on after others have died: who is lost, and a smaller group without these.
//
// torch takes the ranks of the smaller group from the caller's list, not from the backend. So a group whose ranks are
// not exactly the others of the list is never handed out.
#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "process_group.h"
#include "types.h"

namespace ccom_torch {
namespace {

constexpr const char* kShrunk = ":shrunk";

std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

std::string place(const std::string& name, int rank, int size) {
  return " (group '" + name + "', rank " + std::to_string(rank) + " of " + std::to_string(size) + "): ";
}

// `ranks` are by rank; may be empty.
std::vector<uint64_t> without(const std::vector<int>& excluded, const std::vector<uint64_t>& ranks) {
  std::vector<uint64_t> left;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (std::ranges::count(excluded, static_cast<int>(rank)) == 0) left.push_back(ranks[rank]);
  return left;
}

// Equal on all ranks of the smaller communicator, which have shrunk the parent equally often. Never 0.
uint64_t number_of_smaller(uint64_t parent, uint64_t times, const std::vector<int>& excluded) {
  uint64_t number = parent;
  const auto mix = [&number](uint64_t value) {  // FNV-1a by words, with the high bits folded in
    number = (number ^ value) * 0x100000001b3U;
    number ^= number >> 32;
  };
  mix(times);
  for (const int rank : excluded) mix(static_cast<uint64_t>(rank));
  return number | 1;
}

// By ranks of the parent, in the order of the smaller communicator.
std::vector<int> ranks_of(ccomComm_t smaller, int count, int rank_in_parent) {
  std::vector<int> ranks(static_cast<size_t>(count));
  check(ccomAllGather(&rank_in_parent, ranks.data(), 1, ccomInt32, smaller, nullptr), smaller);
  return ranks;
}

std::string who_died_too(const Communicator::Survivors& survivors, const std::vector<int>& ranks) {
  std::vector<int> died, all = survivors.excluded;
  for (int rank = 0; rank < survivors.size; ++rank) {
    if (std::ranges::count(ranks, rank) + std::ranges::count(survivors.excluded, rank) == 0) died.push_back(rank);
  }
  all.insert(all.end(), died.begin(), died.end());
  std::ranges::sort(all);
  return std::string(died.size() == 1 ? "rank " : "ranks ") + listed(died) +
         " died too. To do: exclude all that have died, on every rank: shrink_group([" + listed(all) +
         "]); ccom.torch.lost_ranks() returns them";
}

c10::intrusive_ptr<c10d::Backend::Options> options_or_default(c10::intrusive_ptr<c10d::Backend::Options> options,
                                                              std::chrono::milliseconds timeout) {
  if (options == nullptr) options = c10::make_intrusive<OptionsLikeGloo>("ccom", timeout);
  return options;
}

}  // namespace

Communicator::Communicator(const Survivors& survivors, Milliseconds timeout, const std::string& name)
    : timeout_ms_(timeout.count()) {
  const ccomConfig_t config = settings(name);
  const auto excluded_count = static_cast<int>(survivors.excluded.size());
  Communicator& parent = survivors.parent;
  number_ = number_of_smaller(parent.number_, parent.shrunk_.load(), survivors.excluded);
  try {
    const Use use(parent);
    // Before it is this call's turn: what is queued may wait for ranks that do not come.
    if (survivors.aborts) check(ccomCommRevoke(use.comm(), 0), use.comm());
    parent.run_in_order([&] {
      check(ccomCommShrink(use.comm(), survivors.excluded.data(), excluded_count, &comm_, &config,
                           survivors.aborts ? CCOM_SHRINK_ABORT : CCOM_SHRINK_DEFAULT),
            nullptr);
    });
    require_all(survivors);
  } catch (const CallFailed& failure) {
    rethrow(*interrupt_);
    rethrow(*parent.interrupt_);
    raise("ccom shrink" + place(survivors.parent_name, survivors.rank, survivors.size) + failure.what());
  }
  parent.shrunk_.fetch_add(1);
}

// All ranks find the same, because they have a communicator of the same ranks; whoever dies after that is its error.
void Communicator::require_all(const Survivors& survivors) {
  int count = 0;
  check(ccomCommCount(comm_, &count), comm_);
  if (count == survivors.size_left()) return;
  std::string text;
  try {
    text = who_died_too(survivors, ranks_of(comm_, count, survivors.rank));
  } catch (const CallFailed&) {  // and another one meanwhile
    text = "more ranks died than are excluded. To do: exclude all that ccom.torch.lost_ranks() returns";
  }
  ccomCommDestroy(comm_);
  comm_ = nullptr;
  raise("ccom shrink" + place(survivors.parent_name, survivors.rank, survivors.size) + text);
}

std::vector<int> Communicator::lost_ranks(int size) {
  const Use use(*this);
  std::vector<int> lost(static_cast<size_t>(size));
  int flags = 0, count = 0;
  run_in_order([&] { check(ccomCommAgree(use.comm(), &flags, lost.data(), &count), nullptr); });
  lost.resize(static_cast<size_t>(count));
  return lost;
}

ProcessGroup::ProcessGroup(const ProcessGroup& parent, const Communicator::Survivors& survivors,
                           c10::intrusive_ptr<Options> options)
    : Backend(survivors.rank_left(), survivors.size_left()),
      origin_(parent.origin_),
      options_(options_or_default(std::move(options), parent.options_->timeout)),
      name_(parent.name_.ends_with(kShrunk) ? parent.name_ : parent.name_ + kShrunk),
      global_ranks_(without(survivors.excluded, parent.global_ranks_)),
      is_default_(parent.is_default_),
      stands_for_gloo_(parent.stands_for_gloo_) {
  use(std::make_unique<Communicator>(survivors, options_->timeout, name_));
  generation_ = "ccom-shrunk-" + std::to_string(communicator().number());
  store_ = c10::make_intrusive<c10d::PrefixStore>(generation_ + "-itself", parent.store_);
  enter_registry();
}

std::vector<int> ProcessGroup::lost_ranks() {
  try {
    return communicator().lost_ranks(size_);
  } catch (const CallFailed& failure) {
    rethrow(*communicator().interrupt());
    raise("ccom lost_ranks" + place(name_, rank_, size_) + failure.what());
  }
}

// torch connects to it again for the smaller group, and would wait for one that is gone.
void ProcessGroup::require_store() {
  try {
    store_->check({"ccom/is here"});
  } catch (const std::exception& cause) {
    raise("ccom shrink" + place(name_, rank_, size_) +
          "the store has gone, without which torch makes no group. To do: serve it where no rank's end ends it, as in "
          "the "
          "process that starts the ranks. " +
          cause.what());
  }
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::shrink(const std::vector<int64_t>& ranks_to_exclude, int shrink_flags,
                                                       const c10::intrusive_ptr<Options>& options) {
  std::vector<int> excluded(ranks_to_exclude.begin(), ranks_to_exclude.end());
  std::ranges::sort(excluded);
  const bool are_ranks = std::ranges::all_of(excluded, [this](int rank) { return rank >= 0 && rank < size_; });
  TORCH_CHECK(are_ranks && std::ranges::adjacent_find(excluded) == excluded.end(), "ccom shrink: ranks [",
              listed(excluded), "] are not different ones of ", size_);
  TORCH_CHECK(std::ranges::count(excluded, rank_) == 0, "ccom shrink: rank ", rank_, " excludes itself");
  require_store();
  const Communicator::Survivors survivors{communicator(), name_, rank_, size_, std::move(excluded), shrink_flags != 0};
  return c10::make_intrusive<ProcessGroup>(*this, survivors, options);
}

}  // namespace ccom_torch
