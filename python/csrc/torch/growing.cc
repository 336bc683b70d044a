// SPDX-License-Identifier: Apache-2.0
//
// How new processes come to a group that runs: a larger communicator of its ranks, which keep their numbers, and new
// ones.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "process_group.h"
#include "types.h"

namespace ccom_torch {

Communicator::Communicator(const Growth& growth, Milliseconds timeout, const std::string& name)
    : timeout_ms_(timeout.count()) {
  ccomConfig_t config = settings(name);
  Told told;
  try {
    std::optional<Use> use;
    if (growth.parent != nullptr) use.emplace(*growth.parent);
    if (growth.rank == 0) {
      told.number = new_number();
      check(ccomCommGetUniqueId(use->comm(), &told.id), use->comm());
      write(growth.store, growth.key, told);
    } else {
      told = read(growth.store, growth.key, growth.rank, timeout, name, *interrupt_);
    }
    if (growth.parent == nullptr) {
      const std::string interface = interface_towards_master();
      if (!interface.empty()) config.ifname = interface.c_str();
      check(ccomCommGrow(nullptr, growth.size, &told.id, growth.rank, &comm_, &config), nullptr);
    } else {
      growth.parent->run_in_order([&] {
        check(ccomCommGrow(use->comm(), growth.size, growth.rank == 0 ? &told.id : nullptr, -1, &comm_, &config),
              nullptr);
      });
    }
  } catch (const CallFailed& failure) {
    if (growth.rank == 0) forget(growth.store, growth.key);
    rethrow(*interrupt_);
    if (growth.parent != nullptr) rethrow(*growth.parent->interrupt_);
    raise("ccom grow of group '" + name + "' (rank " + std::to_string(growth.rank) + " of then " +
          std::to_string(growth.size) + "): " + failure.what());
  }
  number_ = told.number;
  if (growth.rank == 0) forget(growth.store, growth.key);  // all ranks have joined
}

namespace {

// A larger default group. Ranks of `parent`, null for a new rank, are ranks 0 to its size - 1.
struct Larger {
  c10::intrusive_ptr<c10d::Store> store;
  std::string key, name;
  int rank, size;
};

std::unique_ptr<Communicator> start(const Larger& larger, Communicator* parent, std::chrono::milliseconds timeout) {
  return std::make_unique<Communicator>(
      Communicator::Growth{parent, *larger.store, larger.key, larger.rank, larger.size}, timeout, larger.name);
}

}  // namespace

ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                           c10::intrusive_ptr<Options> options, std::string name, bool stands_for_gloo,
                           std::unique_ptr<Communicator> communicator)
    : Backend(rank, size),
      origin_(store),
      options_(std::move(options)),
      name_(std::move(name)),
      is_default_(true),
      stands_for_gloo_(stands_for_gloo) {
  use(std::move(communicator));
  generation_ = "ccom-grown-" + std::to_string(this->communicator().number());
  store_ = c10::make_intrusive<c10d::PrefixStore>(generation_ + "-itself", std::move(store));
  enter_registry();
}

c10::intrusive_ptr<ProcessGroup> ProcessGroup::grow(c10::intrusive_ptr<c10d::Store> store, const std::string& key,
                                                    int size) {
  TORCH_CHECK(size > size_, "ccom grow: a group of ", size_, " ranks cannot grow to ", size);
  const Larger larger{store, key, name_, rank_, size};
  auto communicator = start(larger, &this->communicator(), options_->timeout);
  return c10::make_intrusive<ProcessGroup>(std::move(store), rank_, size, options_, name_, stands_for_gloo_,
                                           std::move(communicator));
}

c10::intrusive_ptr<ProcessGroup> ProcessGroup::join(c10::intrusive_ptr<c10d::Store> store, const std::string& key,
                                                    int rank, int size, Milliseconds timeout, const std::string& name,
                                                    bool stands_for_gloo) {
  auto communicator = start({store, key, name, rank, size}, nullptr, timeout);
  return c10::make_intrusive<ProcessGroup>(std::move(store), rank, size,
                                           c10::make_intrusive<OptionsLikeGloo>("ccom", timeout), name, stands_for_gloo,
                                           std::move(communicator));
}

}  // namespace ccom_torch
