// SPDX-License-Identifier: Apache-2.0
//
// An emulated EFA: what libfabric's efa provider and its device may do to a program, and no loopback provider does.
//
// provider.cc stands in for libfabric itself (fi_getinfo, fi_fabric and all behind them), so a test that links it runs
// everything of ours down to the fi_* calls. Between its endpoints lies this network, all in one process. Of every send
// and write under way a random piece moves at a random poll of anybody: nothing keeps an order, writes land in parts,
// completions come late and shuffled, posts are refused, a message that finds no buffer is RNR. All from one seed.
//
// It is stricter than a device: what would be silent damage there is a violation() here: memory that is not registered,
// registered for something else or deregistered under way, a completion queue that overruns, queues overfilled, sizes
// beyond the limits, immediates of more than 4 bytes, an address that the receiver has not in its vector.
//
// Facts behind it: fi_efa(7), "fabric comparison" of libfabric's efa provider, its efa_errno.h. Thread-safe.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ccom::efa {

struct Personality {
  uint64_t seed = 1;
  int mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  bool has_rma = true;
  size_t message_bytes = 8192;              // the largest send
  size_t write_bytes = size_t{1} << 30;     // the largest write
  size_t queue = 512;                       // operations that may be posted at a time, each way
  unsigned refuse_one_in = 5;               // posts answered by -FI_EAGAIN
  unsigned hold_back_one_in = 2;            // completions, at each poll
  unsigned refuse_registration_one_in = 0;  // answered by -FI_ENOMEM
  int patience = 40;                        // attempts to deliver before it is an error
};

// A personality in which every free choice is drawn from the seed.
Personality draw_personality(uint64_t seed);

enum Errno : int {  // of the efa provider, as fi_cq_readerr() tells them in prov_errno
  kFlushed = 1,
  kRemoteBadAddress = 7,
  kRnr = 10,
  kUnresponsive = 13,
  kUnknownPeer = 14,
  kUnreachable = 15,
};
int to_fi_errno(int efa_errno);
const char* words_for(int efa_errno);

struct Domain;
struct Device;

struct MemoryRegion {
  fid_mr fid{};
  Domain* domain = nullptr;
  const std::byte* begin = nullptr;
  size_t size_bytes = 0;
  uint64_t access = 0;
  bool is_bound = false;
  bool is_usable = false;  // bound and enabled, where the mode asks for it
};

struct Domain {
  fid_domain fid{};
  std::set<MemoryRegion*> regions;
};

struct Vector {  // of addresses
  fid_av fid{};
  std::vector<std::string> addresses;
};

struct Entry {
  fi_cq_data_entry good{};
  int efa_errno = 0;
  Device* sender = nullptr;  // whose send slot is free once this was read
};

struct Queue {
  fid_cq fid{};
  size_t size = 0;
  std::deque<Entry> late, ready, failed;
};

struct PostedReceive {
  std::byte* data = nullptr;
  size_t size_bytes = 0;
  void* descriptor = nullptr;
  void* context = nullptr;
};

struct Device {  // an endpoint
  fid_ep fid{};
  Domain* domain = nullptr;
  Vector* vector = nullptr;
  Queue* queue = nullptr;
  std::string address;
  bool is_enabled = false, is_dead = false;
  std::deque<PostedReceive> receives;
  size_t sends_under_way = 0;
};

struct Flight {
  Device* from = nullptr;
  std::string to;
  bool is_write = false;
  const std::byte* data = nullptr;
  size_t size_bytes = 0;
  void* descriptor = nullptr;
  void* context = nullptr;
  uint64_t immediate = 0, remote_address = 0, key = 0;
  std::vector<std::pair<size_t, size_t>> pieces{};  // of a write, not yet there: offset, bytes
  int attempts = 0;
};

class Network {
 public:
  // For tests, between jobs.
  void become(const Personality& personality);
  std::vector<std::string> violations();
  // The next operation of this endpoint, or of any if empty, fails so.
  void fail_next(int efa_errno, std::string address = {});
  void kill(const std::string& address);  // it does nothing any more, and answers nothing
  // Its operations, and those to it, fail from now on: some before anything has arrived, some in the middle, some
  // although all has arrived and was reported there.
  void unplug(const std::string& address);
  size_t endpoints();
  uint64_t registrations();  // of memory, ever

  // For the provider. The lock is taken there.
  std::mutex mutex;
  Personality personality;
  uint64_t registered = 0;
  void violate(std::string what);
  bool chance(unsigned one_in) { return one_in != 0 && random_() % one_in == 0; }
  uint64_t draw() { return random_(); }
  void open(Device& device);
  void close(Device& device);
  // Looks whether [data, data + size) may be used so; a violation if not.
  bool is_registered(const Device& device, const void* data, size_t size_bytes, void* descriptor, uint64_t access);
  void launch(Flight flight);
  // Lets some of what is under way happen.
  void advance();
  void complete(Queue& queue, Entry entry);

 private:
  void step(size_t index);
  bool try_message(Flight& flight, Device& to);
  bool try_write(Flight& flight, Device& to);
  const MemoryRegion* find_target(const Device& to, const Flight& flight, uint64_t& offset) const;
  bool knows(const Device& device, const std::string& address) const;
  bool arrive(Flight& flight, Device& to, const MemoryRegion& region, uint64_t offset);
  void cut_off(Flight& flight);
  void fail(Flight& flight, int efa_errno);

  std::mt19937_64 random_;
  std::map<std::string, Device*> devices_;
  std::set<std::string> unplugged_;
  std::set<std::string> met_;  // addresses that have ever answered
  std::vector<Flight> flights_;
  std::vector<std::string> violations_;
  std::deque<std::pair<std::string, int>> planned_failures_;
};

Network& network();

}  // namespace ccom::efa
