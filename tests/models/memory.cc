// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace ccom::model {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace

void Memory::reset(std::byte* region, size_t bytes) {
  region_ = region;
  bytes_ = bytes;
  locations_.clear();
  sequential_ = {};
  cells_.clear();
}

void Memory::start(int threads) {
  CCOM_ASSERT(threads <= kMostThreads);
  threads_.assign(at(threads), {});
  for (int i = 0; i < threads; ++i) threads_[at(i)].now.clock[at(i)] = 1;
}

bool Memory::is_shared(const volatile void* address) const {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(region_) < bytes_;
}

uintptr_t Memory::offset_of(const volatile void* address) const {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(region_);
}

void Memory::add_location(const volatile void* address, size_t bytes) {
  CCOM_ASSERT(is_shared(address) && locations_.size() < kMostLocations);
  Location& added = locations_.emplace_back(Location{offset_of(address), bytes, {Store{}}, {0}, {0}});
  std::memcpy(&added.stores[0].value, region_ + added.offset, bytes);
  added.stores[0].hash = mix(0x1717, added.stores[0].value);
}

int Memory::location_at(const volatile void* address) const {
  const uintptr_t offset = offset_of(address);
  for (size_t i = 0; i < locations_.size(); ++i)
    if (offset - locations_[i].offset < locations_[i].bytes) return static_cast<int>(i);
  return -1;
}

int Memory::place_of(int location, uint8_t store) const { return locations_[at(location)].place[store]; }

void Memory::learn_seen(Knowledge& to, const std::array<uint8_t, kMostLocations>& from) const {
  for (size_t i = 0; i < locations_.size(); ++i) {
    const auto& place = locations_[i].place;
    if (place[from[i]] > place[to.seen[i]]) to.seen[i] = from[i];
  }
}

void Memory::learn(Knowledge& to, const Knowledge& from) const {
  learn_seen(to, from.seen);
  for (size_t i = 0; i < threads_.size(); ++i) to.clock[i] = std::max(to.clock[i], from.clock[i]);
}

int Memory::oldest_readable(int thread, int location, Order order) const {
  const int own = place_of(location, threads_[at(thread)].now.seen[at(location)]);
  return order == Order::SeqCst ? std::max(own, place_of(location, sequential_[at(location)])) : own;
}

std::vector<int> Memory::readable(int thread, int location, Order order) const {
  std::vector<int> places;
  const int newest = static_cast<int>(locations_[at(location)].order.size()) - 1;
  for (int place = newest; place >= oldest_readable(thread, location, order); --place) places.push_back(place);
  return places;
}

std::vector<int> Memory::writable(int thread, int location, Order order) const {
  std::vector<int> places = readable(thread, location, order);
  const Location& own = locations_[at(location)];
  std::erase_if(places, [&](int place) { return own.stores[own.order[at(place)]].is_taken; });
  return places;
}

bool Memory::has_newer(int thread, int location) const {
  return oldest_readable(thread, location, Order::Relaxed) + 1 <
         static_cast<int>(locations_[at(location)].order.size());
}

uint64_t Memory::read(int thread, int location, int place, Order order) {
  Location& own = locations_[at(location)];
  ThreadView& view = threads_[at(thread)];
  const uint8_t number = own.order[at(place)];
  const Store& store = own.stores[number];
  view.now.seen[at(location)] = number;
  learn(acquires(order) ? view.now : view.acquirable, store.released);
  if (order == Order::SeqCst) {
    uint8_t& sequential = sequential_[at(location)];
    if (place_of(location, sequential) < place) sequential = number;
  }
  return store.value;
}

uint64_t Memory::modify(int thread, int location, int place, Order order,
                        const std::function<uint64_t(uint64_t)>& change) {
  Location& own = locations_[at(location)];
  own.stores[own.order[at(place)]].is_taken = true;
  const Store before = own.stores[own.order[at(place)]];
  read(thread, location, place, order);
  write(thread, location, place, change(before.value), order, &before);
  return before.value;
}

uint64_t Memory::value_at(int location, int place) const {
  const Location& own = locations_[at(location)];
  return own.stores[own.order[at(place)]].value;
}

size_t Memory::byte_within(int location, const void* address) const {
  return offset_of(address) - locations_[at(location)].offset;
}

void Memory::write(int thread, int location, int behind, uint64_t value, Order order, const Store* read_by_rmw) {
  Location& own = locations_[at(location)];
  ThreadView& view = threads_[at(thread)];
  const auto number = static_cast<uint8_t>(own.stores.size());
  CCOM_ASSERT(own.stores.size() < 255);
  Store store{.value = value};
  if (read_by_rmw != nullptr) store.released = read_by_rmw->released;  // the release sequence goes on
  own.order.insert(own.order.begin() + behind + 1, number);
  own.place.push_back(0);
  for (size_t i = 0; i < own.order.size(); ++i) own.place[own.order[i]] = static_cast<uint8_t>(i);
  own.stores.push_back({});  // so that its number is valid
  view.now.seen[at(location)] = number;
  learn(store.released, releases(order) ? view.now : view.released);
  store.released.seen[at(location)] = number;
  if (order == Order::SeqCst && place_of(location, sequential_[at(location)]) < behind + 1)
    sequential_[at(location)] = number;
  store.hash = mix(mix(static_cast<uint64_t>(thread) << 32 | view.now.clock[at(thread)], value), 7);
  store.hash = mix(store.hash, hash_of(store.released));
  own.stores[number] = store;
  std::memcpy(region_ + own.offset, &own.stores[own.order.back()].value, own.bytes);
}

void Memory::skip_one(int thread, int location) {
  Location& own = locations_[at(location)];
  uint8_t& seen = threads_[at(thread)].now.seen[at(location)];
  seen = own.order[at(own.place[seen] + 1)];
}

void Memory::fence(int thread, Order order) {
  ThreadView& view = threads_[at(thread)];
  if (acquires(order)) learn(view.now, view.acquirable);
  if (order == Order::SeqCst) {
    Knowledge sequential{.seen = sequential_};
    learn_seen(sequential, view.now.seen);
    sequential_ = sequential.seen;
    learn_seen(view.now, sequential_);
  }
  if (releases(order)) view.released = view.now;
}

void Memory::tick(int thread) { ++threads_[at(thread)].now.clock[at(thread)]; }

std::string Memory::plain(int thread, const volatile void* address, size_t bytes, bool is_write) {
  const auto& clock = threads_[at(thread)].now.clock;
  const uintptr_t offset = offset_of(address);
  for (uintptr_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word) {
    Cell& cell = cells_[word];
    const auto race = [&](int other, const char* what) {
      return std::string("data race: thread ") + std::to_string(thread) + (is_write ? " writes" : " reads") +
             " offset " + std::to_string(word * 4) + " that thread " + std::to_string(other) + " " + what;
    };
    if (cell.writer >= 0 && cell.writer != thread && cell.written > clock[at(cell.writer)])
      return race(cell.writer, "has written");
    for (int other = 0; is_write && other < static_cast<int>(threads_.size()); ++other)
      if (other != thread && cell.read[at(other)] > clock[at(other)]) return race(other, "has read");
    if (is_write) {
      cell.writer = thread;
      cell.written = clock[at(thread)];
    } else {
      cell.read[at(thread)] = clock[at(thread)];
    }
  }
  return {};
}

// Stores are known by their writer and its clock, so that it does not matter in which order they were made.
uint64_t Memory::hash_of(const Knowledge& knowledge) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < locations_.size(); ++i)
    if (knowledge.seen[i] != 0) sum += mix(locations_[i].offset, locations_[i].stores[knowledge.seen[i]].hash);
  for (size_t i = 0; i < threads_.size(); ++i) sum += mix(i + 1, knowledge.clock[i]);
  return sum;
}

uint64_t Memory::hash() const {
  uint64_t sum = hash_of(Knowledge{.seen = sequential_});
  for (const Location& location : locations_) {
    if (location.stores.size() == 1) continue;
    uint64_t hash = location.offset;
    for (uint8_t store : location.order)
      hash = mix(hash, location.stores[store].hash + (location.stores[store].is_taken ? 1 : 0));
    sum += hash;
  }
  for (const ThreadView& thread : threads_)
    sum = mix(mix(mix(sum, hash_of(thread.now)), hash_of(thread.acquirable)), hash_of(thread.released));
  return sum;
}

}  // namespace ccom::model
