// SPDX-License-Identifier: Apache-2.0
//
// The C++ memory model as a machine with views, in the manner of Kang, Hur, Lahav, Vafeiadis and Dreyer, "A Promising
// Semantics for Relaxed-Memory Concurrency" (POPL 2017), without promises.
//
// A location has all stores ever made to it, in modification order. A thread may read any that is not older than what
// it knows; a store may take any place in the order that is newer than what its thread knows, but not between a store
// and the read-modify-write that read it. What a thread knows travels from release to acquire, through fences and
// along read-modify-writes (C++20 release sequences). Sequentially consistent fences and accesses share one more view.
// Vector clocks travel the same ways; plain accesses that they do not order are a data race.
//
// Not modelled: loads that read stores which have not been executed yet (load buffering; no thread's progress depends
// on such a value here), consume, and accesses of different size to one atomic object.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ccom::model {

inline constexpr int kMostThreads = 4;
inline constexpr int kMostLocations = 48;

enum class Order : int { Relaxed = 0, Consume = 1, Acquire = 2, Release = 3, AcqRel = 4, SeqCst = 5 };  // as in the ABI
inline constexpr std::array kOrderNames{"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};

constexpr bool acquires(Order order) { return order != Order::Relaxed && order != Order::Release; }
constexpr bool releases(Order order) { return order >= Order::Release; }

// What is known: of each location the oldest store that may still be read, and of each thread how far it had come.
struct Knowledge {
  std::array<uint8_t, kMostLocations> seen{};  // numbers of stores, by location
  std::array<uint16_t, kMostThreads> clock{};
};

// A store, and what is learnt by reading it.
struct Store {
  uint64_t value = 0;
  Knowledge released{};
  uint64_t hash = 0;      // of writer, its clock, value and what is released
  bool is_taken = false;  // a read-modify-write has read it
};

struct Location {
  uintptr_t offset = 0;  // in the shared region
  size_t bytes = 0;
  std::vector<Store> stores;   // in the order in which they were made
  std::vector<uint8_t> order;  // their numbers in modification order
  std::vector<uint8_t> place;  // of each store in `order`
};

struct ThreadView {
  Knowledge now, acquirable, released;  // at once; by an acquire fence; at the last release fence
};

class Memory {
 public:
  void reset(std::byte* region, size_t bytes);
  void start(int threads);
  bool is_shared(const volatile void* address) const;
  uintptr_t offset_of(const volatile void* address) const;

  // Declares an atomic object, before the threads start; its memory has the first value.
  void add_location(const volatile void* address, size_t bytes);
  // The atomic object that contains this address, or -1.
  int location_at(const volatile void* address) const;

  // The places in modification order that a thread's load, store or read-modify-write may choose.
  std::vector<int> readable(int thread, int location, Order order) const;
  std::vector<int> writable(int thread, int location, Order order) const;  // a new store comes behind each of them
  bool has_newer(int thread, int location) const;

  uint64_t read(int thread, int location, int place, Order order);
  void write(int thread, int location, int behind, uint64_t value, Order order, const Store* read_by_rmw = nullptr);
  // Returns what was read.
  uint64_t modify(int thread, int location, int place, Order order, const std::function<uint64_t(uint64_t)>& change);
  uint64_t value_at(int location, int place) const;
  size_t byte_within(int location, const void* address) const;
  // Forgets what older stores a thread could read: at least the next one.
  void skip_one(int thread, int location);
  void fence(int thread, Order order);

  // Empty, or why the access is an error. Plain accesses of one thread, not ordered with another's, one of them a
  // write.
  std::string plain(int thread, const volatile void* address, size_t bytes, bool is_write);
  // After what others may learn from: what comes later is not part of it.
  void tick(int thread);
  uint64_t hash() const;

 private:
  struct Cell {
    int writer = -1;
    uint16_t written = 0;
    std::array<uint16_t, kMostThreads> read{};
  };
  int oldest_readable(int thread, int location, Order order) const;
  int place_of(int location, uint8_t store) const;
  void learn(Knowledge& to, const Knowledge& from) const;
  void learn_seen(Knowledge& to, const std::array<uint8_t, kMostLocations>& from) const;
  uint64_t hash_of(const Knowledge& knowledge) const;

  std::byte* region_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Location> locations_;
  std::vector<ThreadView> threads_;
  std::array<uint8_t, kMostLocations> sequential_{};  // the view of sequentially consistent fences and accesses
  std::unordered_map<uintptr_t, Cell> cells_;         // of four bytes
};

constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15U + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9U;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebU;
  return x ^ x >> 32;
}

}  // namespace ccom::model
