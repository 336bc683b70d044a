// SPDX-License-Identifier: Apache-2.0
//
// What threads do. Each step first lets the explorer choose who goes on; what it finds is chosen when the thread is on.
#include <algorithm>

#include "base/assert.h"
#include "exploration.h"
#include "inside.h"

namespace ccom::model {
namespace {

constexpr std::array kKinds{"start", "load",       "store",      "modify",    "fence",
                            "spin",  "futex wait", "futex wake", "membarrier"};

}  // namespace

void Exploration::declare(const volatile void* address, size_t bytes, const std::string& name) {
  memory_.add_location(address, bytes);
  names_.push_back(name);
}

int Exploration::declared(const volatile void* address) const {
  const int location = memory_.location_at(address);
  CCOM_ASSERT(location >= 0);
  return location;
}

// Of a fence: which operation of this thread was before it.
std::string Exploration::text_of(uint32_t key) const {
  const auto kind = static_cast<Kind>(key & 15);
  if (kind == Kind::Start) return "the start";
  std::string text = kKinds[key & 15];
  if (kind == Kind::Load || kind == Kind::Store || kind == Kind::Modify) text += " " + names_[key >> 8 & 255];
  if (kind <= Kind::Fence) text += std::string(" ") + kOrderNames[key >> 4 & 15];
  if (kind == Kind::Fence) text += " after " + text_of(key >> 16);
  return text;
}

Exploration::Site& Exploration::visit(Kind kind, int location, Order order) {
  uint32_t key = static_cast<uint32_t>(kind) | static_cast<uint32_t>(order) << 4;
  if (kind == Kind::Fence) {
    key |= self().last << 16;
  } else if (kind != Kind::Membarrier) {
    key |= static_cast<uint32_t>(location) << 8;
  }
  if (kind <= Kind::Modify) self().last = key;
  const auto [found, is_new] = sites_.try_emplace(key);
  Site& site = found->second;
  if (is_new) {
    site.text = text_of(key);
    site.order = order;
    for (const Mutation& mutation : options_.mutations) {
      if (mutation.site != site.text) continue;
      site.is_mutated = true;
      site.is_dropped = mutation.is_dropped;
      site.order = mutation.weaker;
    }
  }
  ++site.count;
  return site;
}

void Exploration::record(const Site& site, uint64_t value) {
  self().trace = mix(mix(self().trace, value), static_cast<uint64_t>(site.order));
  history_.push_back({current_, &site, value});
}

uint64_t Exploration::load(const volatile void* address, Order order) {
  const Inside inside;
  schedule();
  const int location = declared(address);
  const Site& site = visit(Kind::Load, location, order);
  const auto places = memory_.readable(current_, location, site.order);
  const uint64_t value =
      memory_.read(current_, location, places[static_cast<size_t>(choose(places.size()))], site.order);
  if (std::ranges::find(self().loaded, location) == self().loaded.end()) self().loaded.push_back(location);
  record(site, value);
  return value;
}

void Exploration::store(const volatile void* address, uint64_t value, Order order) {
  const Inside inside;
  schedule();
  const int location = declared(address);
  const Site& site = visit(Kind::Store, location, order);
  const auto places = memory_.writable(current_, location, site.order);
  memory_.write(current_, location, places[static_cast<size_t>(choose(places.size()))], value, site.order);
  memory_.tick(current_);
  record(site, value);
}

uint64_t Exploration::modify(const volatile void* address, Order order,
                             const std::function<uint64_t(uint64_t)>& change) {
  const Inside inside;
  schedule();
  const int location = declared(address);
  const Site& site = visit(Kind::Modify, location, order);
  const auto places = memory_.writable(current_, location, site.order);
  const int place = places[static_cast<size_t>(choose(places.size()))];
  const uint64_t value = memory_.modify(current_, location, place, site.order, change);
  memory_.tick(current_);
  record(site, value);
  return value;
}

// Fails only on another value than the expected one: a weak one that fails without a reason is tried again anyway.
uint64_t Exploration::compare_exchange(const volatile void* address, uint64_t expected, uint64_t desired, Order order,
                                       Order failure) {
  const Inside inside;
  schedule();
  const int location = declared(address);
  const Site& site = visit(Kind::Modify, location, order);
  auto places = memory_.readable(current_, location, site.order);
  const auto modifiable = memory_.writable(current_, location, site.order);
  std::erase_if(places, [&](int place) {
    return memory_.value_at(location, place) == expected && std::ranges::find(modifiable, place) == modifiable.end();
  });
  const int place = places[static_cast<size_t>(choose(places.size()))];
  uint64_t value = memory_.value_at(location, place);
  if (value == expected) {
    memory_.modify(current_, location, place, site.order, [desired](uint64_t) { return desired; });
  } else {
    memory_.read(current_, location, place, std::min(failure, site.order));
  }
  memory_.tick(current_);
  record(site, value);
  return value;
}

void Exploration::fence(Order order) {
  const Inside inside;
  schedule();
  const Site& site = visit(Kind::Fence, 0, order);
  if (!site.is_dropped) memory_.fence(current_, site.order);
  memory_.tick(current_);
  record(site, 0);
}

void Exploration::plain(const volatile void* address, size_t bytes, bool is_write) {
  const Inside inside;
  const int location = memory_.location_at(address);
  if (location >= 0) fail("plain access to the atomic object " + names_[static_cast<size_t>(location)]);
  const std::string race = memory_.plain(current_, address, bytes, is_write);
  if (!race.empty()) fail(race);
}

void Exploration::forget(uint64_t local) {
  const Inside inside;
  self().trace = mix(1, local);
  self().loaded.clear();
  self().last = 0;
}

// A round of polling that finds what the round before has found is the same state again; so the next one finds news.
void Exploration::spin() {
  const Inside inside;
  self().state = State::Spinning;
  schedule();
  self().state = State::Ready;
  std::vector<int> news = self().loaded;
  std::erase_if(news, [this](int location) { return !memory_.has_newer(current_, location); });
  const int location = news[static_cast<size_t>(choose(news.size()))];
  memory_.skip_one(current_, location);
  self().loaded.clear();
  record(visit(Kind::Spin, location, Order::Relaxed), static_cast<uint64_t>(location));
}

// The kernel compares under the lock that wakers take, too, behind a full barrier.
int Exploration::futex_wait(const uint32_t* word, uint32_t expected) {
  const Inside inside;
  schedule();
  const int location = declared(word);
  const Site& site = visit(Kind::FutexWait, location, Order::SeqCst);
  memory_.fence(current_, Order::SeqCst);
  const auto places = memory_.readable(current_, location, Order::Relaxed);
  const uint64_t whole =
      memory_.read(current_, location, places[static_cast<size_t>(choose(places.size()))], Order::Relaxed);
  const auto value = static_cast<uint32_t>(whole >> 8 * memory_.byte_within(location, word));
  record(site, value);
  if (value != expected && !site.is_dropped) return -1;
  self().state = State::Asleep;
  self().sleeps_on = word;
  schedule();
  memory_.fence(current_, Order::SeqCst);
  return 0;
}

void Exploration::futex_wake(const uint32_t* word) {
  const Inside inside;
  schedule();
  const Site& site = visit(Kind::FutexWake, declared(word), Order::SeqCst);
  memory_.fence(current_, Order::SeqCst);
  memory_.tick(current_);
  record(site, 0);
  for (Thread& thread : threads_) {
    if (site.is_dropped || thread.state != State::Asleep || thread.sleeps_on != word) continue;
    thread.state = State::Ready;
    thread.sleeps_on = nullptr;
  }
}

// Every thread executes a full barrier at some time during the call.
void Exploration::membarrier() {
  const Inside inside;
  for (const Thread& thread : threads_) {
    if (thread.index == current_) continue;
    schedule();
    const Site& site = visit(Kind::Membarrier, 0, Order::SeqCst);
    if (!site.is_dropped) memory_.fence(thread.index, Order::SeqCst);
    record(site, 0);
  }
  memory_.fence(current_, Order::SeqCst);
  memory_.tick(current_);
}

}  // namespace ccom::model
