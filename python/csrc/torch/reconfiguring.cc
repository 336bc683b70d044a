// SPDX-License-Identifier: Apache-2.0
//
// torch's reconfigure (2.14): a group object that gets other members, with other ranks. Its handle names the process
// and the store by which it can be met, that of the member with rank 0 is used. The members may have been any others
// before, so their communicator is started anew.
#include "process_group.h"

#ifdef C10D_BACKEND_HAS_RECONFIGURE
#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "types.h"

namespace ccom_torch {

Communicator::Communicator(const Meeting& meeting, Milliseconds timeout, const std::string& name)
    : timeout_ms_(timeout.count()) {
  Told told;
  try {
    if (meeting.rank == 0) {
      if (meeting.store.add(meeting.key + "/times", 1) != 1)
        raise("ccom reconfigure: this uuid has been used for these members already. To do: give another one each time");
      told.number = new_number();
      check(ccomGetUniqueId(&told.id), nullptr);
      write(meeting.store, meeting.key, told);
    } else {
      told = read(meeting.store, meeting.key, meeting.rank, timeout, name, *interrupt_);
    }
    start_by_id(told.id, meeting.rank, meeting.size, settings(name));
  } catch (const CallFailed& failure) {
    if (meeting.rank == 0) forget(meeting.store, meeting.key);
    rethrow(*interrupt_);
    raise("ccom reconfigure of group '" + name + "' (rank " + std::to_string(meeting.rank) + " of " +
          std::to_string(meeting.size) + "): " + failure.what());
  }
  number_ = told.number;
  if (meeting.rank == 0) forget(meeting.store, meeting.key);  // all ranks have joined
}

namespace {

constexpr const char* kBegin = "ccom:";

// "ccom:NUMBER:HOST:PORT"; the address is empty, "ccom:NUMBER:", where the store is no TCPStore.
struct Address {
  std::string host;
  int port = 0;
};

c10d::TCPStore* as_tcp(c10d::Store& store) { return dynamic_cast<c10d::TCPStore*>(&store); }

c10::intrusive_ptr<c10d::Store> plain(const c10::intrusive_ptr<c10d::Store>& store) {
  auto* const prefixed = dynamic_cast<c10d::PrefixStore*>(store.get());
  return prefixed == nullptr ? store : prefixed->getUnderlyingNonPrefixStore();
}

// Throws if it is not a handle of ccom's.
Address address_in(const std::string& handle) {
  const size_t number_ends = handle.find(':', std::char_traits<char>::length(kBegin));
  TORCH_CHECK(handle.starts_with(kBegin) && number_ends != std::string::npos, "ccom reconfigure: '", handle,
              "' is not a handle that get_reconfigure_handle of a ccom group returned");
  const std::string address = handle.substr(number_ends + 1);
  const size_t port_begins = address.rfind(':');
  if (port_begins == std::string::npos) return {};
  return {address.substr(0, port_begins), std::atoi(address.c_str() + port_begins + 1)};
}

std::vector<std::string> members_of(const c10d::ReconfigureOptions& options) {
  if (const auto* ordered = std::get_if<std::vector<std::string>>(&options.handles)) return *ordered;
  const auto& any_order = std::get<std::unordered_set<std::string>>(options.handles);
  std::vector<std::string> members(any_order.begin(), any_order.end());
  std::ranges::sort(members);  // the same on all ranks
  return members;
}

// Different for other members or another order of them.
std::string key_of(int64_t uuid, const std::vector<std::string>& members) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const std::string& member : members)
    for (const char letter : member + '\n') hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3U;
  return "ccom/reconfigured/" + std::to_string(uuid) + "/" + std::to_string(hash);
}

}  // namespace

c10d::ReconfigureHandle ProcessGroup::get_reconfigure_handle() const {
  const auto store = plain(origin_);
  const auto* const tcp = as_tcp(*store);
  return kBegin + std::to_string(own_number_) + ":" +
         (tcp == nullptr ? "" : tcp->getHost() + ":" + std::to_string(tcp->getPort()));
}

// Where the member with rank 0 is met.
c10::intrusive_ptr<c10d::Store> ProcessGroup::store_of(const std::string& handle, Milliseconds timeout) {
  const Address there = address_in(handle);
  const auto own = plain(origin_);
  const auto* const tcp = as_tcp(*own);
  if (there.host.empty() || (tcp != nullptr && tcp->getHost() == there.host && tcp->getPort() == there.port))
    return own;
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(there.port);
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(there.host, options);
}

ProcessGroup::WorkPtr ProcessGroup::reconfigure(const c10d::ReconfigureOptions& options) {
  const std::vector<std::string> members = members_of(options);
  TORCH_CHECK(!members.empty(), "ccom reconfigure: needs a handle for each member, got none");
  for (const std::string& member : members) {
    address_in(member);
    TORCH_CHECK(std::ranges::count(members, member) == 1, "ccom reconfigure: the handle ", member, " is there twice");
  }
  const auto place = std::ranges::find(members, get_reconfigure_handle());
  TORCH_CHECK(place != members.end(), "ccom reconfigure: the handle of this process, ", get_reconfigure_handle(),
              ", is not among those of the ", members.size(), " members");
  const auto rank = static_cast<int>(place - members.begin());
  const auto size = static_cast<int>(members.size());
  const Milliseconds timeout = options.timeout.value_or(options_->timeout);
  const std::string key = key_of(options.uuid, members);
  auto store = store_of(members.front(), timeout);
  auto communicator = std::make_unique<Communicator>(Communicator::Meeting{*store, key, rank, size}, timeout, name_);

  // From here on nothing fails: before, the group stays as it was.
  this->communicator().abort();
  close(Milliseconds(0));
  use(std::move(communicator));
  rank_ = rank;
  size_ = size;
  is_default_ = global_ranks_.empty();
  global_ranks_.clear();
  sequence_ = monitored_ = 0;
  has_failed_ = false;
  generation_ = "ccom-reconfigured-" + std::to_string(this->communicator().number());
  store_ = c10::make_intrusive<c10d::PrefixStore>(generation_ + "-itself", std::move(store));
  auto work = c10::make_intrusive<Work>(rank_, c10d::OpType::UNKNOWN, nullptr, Tensors(), Tensors(), 0);
  work->set_span(Work::Clock::now(), Work::Clock::now());
  work->complete(nullptr);
  return work;
}

}  // namespace ccom_torch
#endif
