// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_memory.h"

#include <cmath>
#include <memory>
#include <new>

#include "bench/core_pair.h"
#include "bench/cores.h"
#include "bench/small_calls.h"

namespace ccom::bench {
namespace {

using launch::ExitCode;
using launch::failure;
using launch::Outcome;
using launch::outcome_of;
using launch::Place;

// Memory that ranks 0 and 1 both reach. Collective.
class SharedPages {
 public:
  SharedPages() = default;
  ~SharedPages() {
    if (window_ != nullptr) ccomCommWindowDeregister(comm_, window_);
    if (memory_ != nullptr) ccomMemFree(memory_);
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  Outcome open(Place place, ccomComm_t comm) {
    comm_ = comm;
    CCOM_LAUNCH_TRY(outcome_of(ccomMemAlloc(&memory_, sizeof(PairMemory)), comm, "allocate"));
    CCOM_LAUNCH_TRY(
        outcome_of(ccomCommWindowRegister(comm, memory_, sizeof(PairMemory), &window_, 0), comm, "register a window"));
    if (place.rank == 0) new (memory_) PairMemory{};
    CCOM_LAUNCH_TRY(outcome_of(ccomBarrier(comm, nullptr), comm, "barrier"));
    if (place.rank > 1) return {};
    void* pages = nullptr;
    const ccomResult_t result = ccomWinGetPeerPtr(window_, 0, &pages);
    if (result == ccomNotSupported) return {};
    shared_ = static_cast<PairMemory*>(pages);
    return outcome_of(result, comm, "find rank 0's memory");
  }
  PairMemory* get() const { return shared_; }  // Null: out of reach.

 private:
  ccomComm_t comm_ = nullptr;
  void* memory_ = nullptr;
  ccomWindow_t window_ = nullptr;
  PairMemory* shared_ = nullptr;
};

class MemoryTuner {
 public:
  MemoryTuner(Place place, ccomComm_t control, ccomComm_t comm, MemoryCostFigures& figures)
      : place_(place), control_(control), comm_(comm), figures_(figures) {}

  Outcome run() {
    CCOM_LAUNCH_TRY(choose_cores());
    {
      const Pinned pinned(own_cores());
      if (place_.rank == 0) measure_own();
      CCOM_LAUNCH_TRY(measure_pair());
    }
    if (place_.rank == 0) CCOM_LAUNCH_TRY(measure_calls());
    if (place_.rank == 0) say_what_is_missing();
    return outcome_of(ccomBarrier(control_, nullptr), control_, "barrier");
  }

 private:
  // Rank 0 takes its first core, rank 1 one beside it.
  Outcome choose_cores() {
    const std::vector<int> usable = usable_cores();
    for (int rank : {0, 1}) {
      int& core = cores_[rank];
      if (place_.rank == rank) {
        core = rank == 1 ? partner_of(cores_[0], usable) : usable.empty() ? 0 : usable[0];
      }
      CCOM_LAUNCH_TRY(
          outcome_of(ccomBroadcast(&core, &core, 1, ccomInt32, rank, control_, nullptr), control_, "agree on cores"));
    }
    return {};
  }
  bool has_two_cores() const { return cores_[1] >= 0; }
  std::vector<int> own_cores() const {
    return place_.rank <= 1 && has_two_cores() ? std::vector<int>{cores_[place_.rank]} : std::vector<int>{};
  }

  void measure_own() {
    own_ = measure_own_memory(caches_);
    figures_.add("cached_load_ns", own_.cached.load);
    figures_.add("cached_store_ns", own_.cached.store);
    figures_.add("far_load_ns", own_.far.load);
    figures_.add("far_store_ns", own_.far.store);
    figures_.add("memory_load_ns", own_.memory.load);
    figures_.add("memory_store_ns", own_.memory.store);
    figures_.add("streamed_store_ns", own_.streamed_store);
    figures_.add("reduced_byte_ns", own_.reduced);
  }

  Outcome measure_pair() {
    if (!has_two_cores()) return {};
    SharedPages pages;
    CCOM_LAUNCH_TRY(pages.open(place_, comm_));
    uint8_t reaches = pages.get() != nullptr;
    CCOM_LAUNCH_TRY(
        outcome_of(ccomBroadcast(&reaches, &reaches, 1, ccomUint8, 1, control_, nullptr), control_, "agree on memory"));
    bool answered = true;
    if (reaches != 0 && place_.rank == 1) answered = serve_pair(*pages.get());
    if (reaches != 0 && place_.rank == 0) {
      pair_ = measure_pair_memory(*pages.get(), caches_, own_.cached.store);
      answered = pair_.has_value();
    }
    if (!answered) return failure(ExitCode::Communication, "--tune: the other rank does not answer");
    if (pair_) add_pair();
    return outcome_of(ccomBarrier(control_, nullptr), control_, "barrier");
  }

  void add_pair() {
    figures_.add("line_ns", pair_->line);
    figures_.add("further_line_ns", pair_->further_line);
    figures_.add("shared_load_ns", pair_->shared.load);
    figures_.add("shared_store_ns", pair_->shared.store);
    figures_.add("long_shared_load_ns", pair_->long_shared.load);
    figures_.add("long_shared_store_ns", pair_->long_shared.store);
    figures_.add("read_call_ns", pair_->read_call);
    figures_.add("read_byte_ns", pair_->read_byte);
  }

  // By the model of node_cost.h: a call of 8 bytes is a barrier and a fetch of what the other has written, each a line
  // from the other core; between ranks that share a core a barrier takes their turns as well.
  Outcome measure_calls() {
    if (!pair_) return {};
    const std::vector<int> cores{cores_[0], cores_[1]};
    SmallCalls alone, crowded;
    CCOM_LAUNCH_TRY(time_small_calls(2, cores, &alone));
    CCOM_LAUNCH_TRY(time_small_calls(4, cores, &crowded));
    const double fetch = pair_->line + pair_->further_line;
    figures_.add("barrier_ns", pair_->barrier - fetch);
    figures_.add("call_ns", alone.allreduce - pair_->barrier - fetch);
    figures_.add("switch_ns", crowded.allreduce - alone.allreduce - 4 * pair_->further_line);
    return {};
  }

  void say_what_is_missing() {
    if (!has_two_cores()) figures_.left_out.emplace_back("costs between cores: ranks 0 and 1 have one core together");
    if (has_two_cores() && !pair_)
      figures_.left_out.emplace_back("costs between cores: no memory that both ranks reach");
    figures_.left_out.emplace_back(
        "reader_ns, read_contention, domain_byte_ns, remote_...: they need more than two cores, or other memory "
        "domains");
  }

  const Place place_;
  const ccomComm_t control_;
  const ccomComm_t comm_;
  MemoryCostFigures& figures_;
  const CacheSizes caches_ = cache_sizes();
  int cores_[2] = {0, -1};
  OwnMemoryCosts own_;
  std::optional<PairCosts> pair_;
};

}  // namespace

void MemoryCostFigures::add(const char* key, double ns) {
  if (std::isfinite(ns) && ns > 0) {
    measured.emplace_back(key, ns);
  } else {
    left_out.emplace_back(std::string(key) + ": nothing to measure, or too little");
  }
}

Outcome measure_memory_costs(Place place, ccomComm_t control, ccomComm_t comm, MemoryCostFigures* figures) {
  return MemoryTuner(place, control, comm, *figures).run();
}

}  // namespace ccom::bench
