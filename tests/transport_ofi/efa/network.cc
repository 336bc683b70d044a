// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_ofi/efa/network.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace ccom::efa {

Network& network() {
  static Network instance;
  return instance;
}

Personality draw_personality(uint64_t seed) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15ull + 1);
  Personality drawn{.seed = seed};
  const int modes[] = {FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_ENDPOINT};
  if (random() % 2 == 0) {  // half of them as EFA is, half any
    drawn.mr_mode = 0;
    for (const int mode : modes) drawn.mr_mode |= random() % 2 == 0 ? mode : 0;
  }
  drawn.has_rma = random() % 8 != 0;
  drawn.message_bytes = size_t{1024} << random() % 4;
  if (random() % 2 == 0) drawn.write_bytes = 4096 + random() % 100'000;
  drawn.queue = 128 + random() % 512;
  drawn.refuse_one_in = static_cast<unsigned>(random() % 6);
  if (drawn.refuse_one_in == 1) drawn.refuse_one_in = 2;
  drawn.hold_back_one_in = static_cast<unsigned>(random() % 4);
  if (drawn.hold_back_one_in == 1) drawn.hold_back_one_in = 2;
  return drawn;
}

int to_fi_errno(int efa_errno) {
  switch (efa_errno) {
    case kFlushed: return FI_ECANCELED;
    case 2:
    case 3:
    case 4:
    case 5:
    case kRemoteBadAddress:
    case 18: return FI_EINVAL;
    case 6:
    case 11: return FI_EMSGSIZE;
    case 8:
    case kUnresponsive:
    case 4124:
    case 4126: return FI_ECONNABORTED;
    case 9:
    case kUnknownPeer: return FI_ENOTCONN;
    case kRnr: return FI_ENORX;
    case 12: return FI_EREMOTEIO;
    case kUnreachable: return FI_EHOSTUNREACH;
    case 4105: return FI_ENOMEM;
    default: return FI_EOTHER;
  }
}

const char* words_for(int efa_errno) {
  switch (efa_errno) {
    case kRemoteBadAddress: return "Invalid address";
    case kRnr: return "Receiver not ready";
    case kUnresponsive: return "Unresponsive remote (was previously responsive)";
    case kUnknownPeer: return "No valid address handle at remote side";
    case kUnreachable: return "Unreachable remote (never received a response)";
    default: return "emulated";
  }
}

void Network::become(const Personality& wanted) {
  const std::lock_guard lock(mutex);
  personality = wanted;
  random_.seed(wanted.seed);
  flights_.clear();
  violations_.clear();
  planned_failures_.clear();
  unplugged_.clear();
  met_.clear();
}

std::vector<std::string> Network::violations() {
  const std::lock_guard lock(mutex);
  return violations_;
}

void Network::fail_next(int efa_errno, std::string address) {
  const std::lock_guard lock(mutex);
  planned_failures_.emplace_back(std::move(address), efa_errno);
}

void Network::kill(const std::string& address) {
  const std::lock_guard lock(mutex);
  if (const auto found = devices_.find(address); found != devices_.end()) found->second->is_dead = true;
  std::erase_if(flights_, [&address](const Flight& flight) { return flight.from->address == address; });
}

void Network::unplug(const std::string& address) {
  const std::lock_guard lock(mutex);
  unplugged_.insert(address);
}

size_t Network::endpoints() {
  const std::lock_guard lock(mutex);
  return devices_.size();
}

uint64_t Network::registrations() {
  const std::lock_guard lock(mutex);
  return registered;
}

void Network::violate(std::string what) { violations_.push_back(std::move(what)); }

void Network::open(Device& device) {
  device.address.resize(32);  // as long as EFA's
  do {
    for (char& byte : device.address) byte = static_cast<char>(random_());
  } while (devices_.contains(device.address));
  devices_[device.address] = &device;
}

void Network::close(Device& device) {
  devices_.erase(device.address);
  std::erase_if(flights_, [&device](const Flight& flight) { return flight.from == &device; });
  if (device.queue == nullptr) return;
  for (auto* entries : {&device.queue->late, &device.queue->ready, &device.queue->failed}) entries->clear();
}

bool Network::is_registered(const Device& device, const void* data, size_t size_bytes, void* descriptor,
                            uint64_t access) {
  if ((personality.mr_mode & FI_MR_LOCAL) == 0 || size_bytes == 0) return true;
  auto* region = static_cast<MemoryRegion*>(descriptor);
  const auto* begin = static_cast<const std::byte*>(data);
  if (!device.domain->regions.contains(region)) {
    violate("an operation's memory is not registered, or not any more");
  } else if (!region->is_usable || (region->access & access) == 0) {
    violate("an operation's memory is registered, but not for this");
  } else if (begin < region->begin || begin + size_bytes > region->begin + region->size_bytes) {
    violate("an operation goes beyond its registered memory");
  } else {
    return true;
  }
  return false;
}

void Network::launch(Flight flight) {
  constexpr size_t kPacket = 4096;
  if (flight.is_write) {
    size_t offset = 0;
    while (offset < flight.size_bytes) {  // any boundaries, as a device that splits and resends
      const size_t most = flight.size_bytes / 8 + kPacket;
      const size_t bytes = std::min<size_t>(flight.size_bytes - offset, 1 + random_() % most);
      flight.pieces.emplace_back(offset, bytes);
      offset += bytes;
    }
    std::ranges::shuffle(flight.pieces, random_);
  }
  ++flight.from->sends_under_way;
  flights_.push_back(std::move(flight));
}

void Network::advance() {
  for (uint64_t steps = random_() % 12; steps > 0 && !flights_.empty(); --steps) step(random_() % flights_.size());
}

void Network::step(size_t index) {
  Flight flight = std::move(flights_[index]);
  flights_[index] = std::move(flights_.back());
  flights_.pop_back();
  if (flight.from->is_dead) return;
  const auto planned = std::ranges::find_if(planned_failures_, [&flight](const auto& failure) {
    return failure.first.empty() || failure.first == flight.from->address;
  });
  if (planned != planned_failures_.end()) {
    const int efa_errno = planned->second;
    planned_failures_.erase(planned);
    return fail(flight, efa_errno);
  }
  if (unplugged_.contains(flight.from->address) || unplugged_.contains(flight.to)) return cut_off(flight);
  const auto found = devices_.find(flight.to);
  if (found == devices_.end() || found->second->is_dead || !found->second->is_enabled) {
    if (++flight.attempts > personality.patience) {
      return fail(flight, met_.contains(flight.to) ? kUnresponsive : kUnreachable);
    }
  } else {
    met_.insert(flight.to);
    if (flight.is_write ? try_write(flight, *found->second) : try_message(flight, *found->second)) return;
  }
  flights_.push_back(std::move(flight));
}

void Network::cut_off(Flight& flight) {
  const auto found = devices_.find(flight.to);
  uint64_t offset = 0;
  const bool is_there = flight.is_write && found != devices_.end() && !found->second->is_dead;
  const MemoryRegion* region = is_there ? find_target(*found->second, flight, offset) : nullptr;
  const size_t left = flight.pieces.size(), arrive_too = region == nullptr ? 0 : random_() % 3 * (left + 1) / 2;
  for (size_t i = 0; i < arrive_too && arrive(flight, *found->second, *region, offset); ++i) {
  }
  const int errors[] = {kUnresponsive, kUnreachable, 4124, 4127};
  fail(flight, errors[random_() % std::size(errors)]);
}

// The next piece of a write, or, after all of them, the report of it. Whether more is to come.
bool Network::arrive(Flight& flight, Device& to, const MemoryRegion& region, uint64_t offset) {
  if (!flight.pieces.empty()) {
    const auto [at, bytes] = flight.pieces.back();
    flight.pieces.pop_back();
    if (is_registered(*flight.from, flight.data, flight.size_bytes, flight.descriptor, FI_WRITE)) {
      std::memcpy(const_cast<std::byte*>(region.begin) + offset + at, flight.data + at, bytes);
    }
    if (!flight.pieces.empty()) return true;
  }
  Entry arrived;
  arrived.good = {nullptr, FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_RMA, flight.size_bytes, nullptr, flight.immediate};
  complete(*to.queue, arrived);
  return false;
}

// True: it is over, one way or the other.
bool Network::try_message(Flight& flight, Device& to) {
  if (to.receives.empty()) {
    if (++flight.attempts <= personality.patience) return false;
    fail(flight, kRnr);
    return true;
  }
  const PostedReceive receive = to.receives.front();
  to.receives.pop_front();
  if (is_registered(*flight.from, flight.data, flight.size_bytes, flight.descriptor, FI_SEND) &&
      is_registered(to, receive.data, receive.size_bytes, receive.descriptor, FI_RECV)) {
    std::memcpy(receive.data, flight.data, std::min(flight.size_bytes, receive.size_bytes));
  }
  Entry arrived;
  arrived.good = {receive.context, FI_RECV | FI_MSG, flight.size_bytes, nullptr, 0};
  if (flight.size_bytes > receive.size_bytes) violate("a message is longer than the buffer for it");
  complete(*to.queue, arrived);
  Entry sent{.sender = flight.from};
  sent.good = {flight.context, FI_SEND | FI_MSG, 0, nullptr, 0};
  complete(*flight.from->queue, sent);
  return true;
}

const MemoryRegion* Network::find_target(const Device& to, const Flight& flight, uint64_t& offset) const {
  for (const MemoryRegion* region : to.domain->regions) {
    if (region->fid.key != flight.key || !region->is_usable || (region->access & FI_REMOTE_WRITE) == 0) continue;
    const bool is_virtual = (personality.mr_mode & FI_MR_VIRT_ADDR) != 0;
    const auto base = is_virtual ? reinterpret_cast<uint64_t>(region->begin) : uint64_t{0};
    if (flight.remote_address < base) return nullptr;
    offset = flight.remote_address - base;
    return offset + flight.size_bytes <= region->size_bytes ? region : nullptr;
  }
  return nullptr;
}

bool Network::knows(const Device& device, const std::string& address) const {
  return std::ranges::find(device.vector->addresses, address) != device.vector->addresses.end();
}

bool Network::try_write(Flight& flight, Device& to) {
  uint64_t offset = 0;
  const MemoryRegion* region = find_target(to, flight, offset);
  if (region == nullptr || !knows(to, flight.from->address)) {
    fail(flight, region == nullptr ? kRemoteBadAddress : kUnknownPeer);
    return true;
  }
  if (arrive(flight, to, *region, offset)) return false;
  Entry written{.sender = flight.from};
  written.good = {flight.context, FI_WRITE | FI_RMA, 0, nullptr, 0};
  complete(*flight.from->queue, written);
  return true;
}

void Network::fail(Flight& flight, int efa_errno) {
  Entry failed{.efa_errno = efa_errno, .sender = flight.from};
  failed.good.op_context = flight.context;
  failed.good.flags = flight.is_write ? FI_WRITE | FI_RMA : FI_SEND | FI_MSG;
  complete(*flight.from->queue, failed);
}

void Network::complete(Queue& queue, Entry entry) {
  queue.late.push_back(entry);
  if (queue.late.size() + queue.ready.size() + queue.failed.size() > queue.size) violate("a completion queue overran");
}

}  // namespace ccom::efa
