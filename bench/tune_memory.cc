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
  MemoryTuner(Place place, ccomComm_t control, ccomComm_t comm, const CorePair& cores, CostFigures& figures)
      : place_(place), control_(control), comm_(comm), cores_(cores), figures_(figures) {}

  Outcome run() {
    CCOM_LAUNCH_TRY(measure_own());
    CCOM_LAUNCH_TRY(measure_pair());
    if (place_.rank == 0) CCOM_LAUNCH_TRY(measure_calls());
    if (place_.rank == 0) say_what_is_missing();
    return outcome_of(ccomBarrier(control_, nullptr), control_, "barrier");
  }

 private:
  bool has_two_cores() const { return cores_.second >= 0; }

  // Both ranks at the same time, as in a call: cores share the last cache and the memory.
  Outcome measure_own() {
    CCOM_LAUNCH_TRY(outcome_of(ccomBarrier(control_, nullptr), control_, "barrier"));
    if (place_.rank > 1) return {};
    own_ = measure_own_memory(caches_);
    if (place_.rank == 1) return {};
    figures_.add("cached_load_ns", own_.cached.load);
    figures_.add("cached_store_ns", own_.cached.store);
    figures_.add("far_load_ns", own_.far.load);
    figures_.add("far_store_ns", own_.far.store);
    figures_.add("memory_load_ns", own_.memory.load);
    figures_.add("memory_store_ns", own_.memory.store);
    figures_.add("streamed_store_ns", own_.streamed_store);
    figures_.add("reduced_byte_ns", own_.reduced);
    return {};
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
    const std::vector<int> cores{cores_.first, cores_.second};
    double small_call_ns = 0, crowded_ns = 0;
    CCOM_LAUNCH_TRY(time_small_allreduce(2, cores, &small_call_ns));
    CCOM_LAUNCH_TRY(time_small_allreduce(4, cores, &crowded_ns));
    const double fetch = pair_->line + pair_->further_line;
    figures_.add("barrier_ns", pair_->barrier - fetch);
    figures_.add("call_ns", small_call_ns - pair_->barrier - fetch);
    // Of four ranks each waits for three others, and then fetches from them.
    figures_.add("switch_ns", crowded_ns - small_call_ns - 4 * pair_->further_line);
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
  const CorePair cores_;
  CostFigures& figures_;
  const CacheSizes caches_ = cache_sizes();
  OwnMemoryCosts own_;
  std::optional<PairCosts> pair_;
};

}  // namespace

void CostFigures::add(const char* key, double ns) {
  constexpr double kMostNs = 1e9;  // The file's reader refuses more.
  if (ns > 0 && ns <= kMostNs) {
    measured.emplace_back(key, ns);
  } else {
    leave_out(key);
  }
}

void CostFigures::leave_out(const char* key) {
  left_out.emplace_back(std::string(key) + ": nothing to measure, or too little");
}

Outcome choose_cores(Place place, ccomComm_t control, CorePair* cores) {
  const std::vector<int> usable = usable_cores();
  if (place.rank == 0) *cores = {.first = usable.empty() ? 0 : usable[0], .usable = static_cast<int>(usable.size())};
  CCOM_LAUNCH_TRY(outcome_of(ccomBroadcast(cores, cores, sizeof *cores, ccomUint8, 0, control, nullptr), control,
                             "agree on cores"));
  if (place.rank == 1) cores->second = partner_of(cores->first, usable);
  return outcome_of(ccomBroadcast(&cores->second, &cores->second, 1, ccomInt32, 1, control, nullptr), control,
                    "agree on cores");
}

std::vector<int> CorePair::of(Place place) const {
  if (second < 0 || place.rank > 1) return {};
  return {place.rank == 0 ? first : second};
}

Outcome measure_memory_costs(Place place, ccomComm_t control, ccomComm_t comm, const CorePair& cores,
                             CostFigures* figures) {
  return MemoryTuner(place, control, comm, cores, *figures).run();
}

}  // namespace ccom::bench
