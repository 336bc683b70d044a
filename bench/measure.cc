// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "bench/compute.h"
#include "bench/operator.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

using launch::Outcome;
using launch::outcome_of;

class Row {
 public:
  Row(const Rig& rig, const Case& what, const Buffers& buffers)
      : rig_(rig),
        case_(what),
        layout_(layout_of(what, rig.place.rank)),
        element_bytes_(size_of(what.type)),
        buffers_(buffers),
        counts_(counts_of(what, rig.place.rank)),
        op_(rig.comm) {
    for (int member = 0; member < calls_together(rig.options); ++member)
      calls_.push_back({buffers.send(what, rig.place.rank, member), buffers.recv(what, rig.place.rank, member)});
  }

  Outcome run(Measurement* measurement) {
    CCOM_LAUNCH_TRY(op_.create(case_.pattern(), rank()));
    prepare();
    CCOM_LAUNCH_TRY(warm_up());
    CCOM_LAUNCH_TRY(time());
    for (std::vector<double>* times : {&seconds_, &compute_seconds_, &both_seconds_})
      CCOM_LAUNCH_TRY(slowest_of_all(times, "collect the times"));
    CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&wrong_, &wrong_, 1, ccomUint64, ccomSum, rig_.control, nullptr),
                               rig_.control, "collect the wrong counts"));
    *measurement = {.seconds = std::move(seconds_),
                    .compute_seconds = std::move(compute_seconds_),
                    .both_seconds = std::move(both_seconds_),
                    .wrong = wrong_};
    return {};
  }

 private:
  struct Pointers {
    std::byte* send;
    std::byte* recv;
  };

  int rank() const { return rig_.place.rank; }
  const Options& options() const { return rig_.options; }
  double group() const { return calls_together(options()); }
  bool verifies(int iteration, int iterations) const {
    if (case_.collective == Collective::Barrier || options().check == Check::Off) return false;
    return options().check == Check::Every || iteration == 0 || iteration == iterations - 1;
  }

  Outcome warm_up() {
    for (int i = 0; i < options().warm_up; ++i) {
      const bool verified = verifies(i, -1);
      if (verified) prepare();
      CCOM_LAUNCH_TRY(invoke(1));
      if (verified) CCOM_LAUNCH_TRY(verify());
    }
    return {};
  }

  // Each value becomes the maximum over all ranks.
  Outcome slowest_of_all(std::vector<double>* values, const char* what) {
    if (values->empty()) return {};
    return outcome_of(
        ccomAllReduce(values->data(), values->data(), values->size(), ccomFloat64, ccomMax, rig_.control, nullptr),
        rig_.control, what);
  }

  // At least `iterations` calls, then more until they have taken min_seconds.
  Outcome time() {
    int batch = options().iterations;
    if (options().overlap) CCOM_LAUNCH_TRY(choose_computation());
    for (double spent = 0;;) {
      const size_t before = seconds_.size();
      CCOM_LAUNCH_TRY(options().mode == Mode::Latency ? time_each(batch) : time_together(batch));
      const double calls = (options().mode == Mode::Latency ? 1 : batch) * group();
      double added = 0;
      for (size_t i = before; i < seconds_.size(); ++i) added += calls * seconds_[i];
      if (options().min_seconds <= 0) return {};
      CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&added, &added, 1, ccomFloat64, ccomMax, rig_.control, nullptr),
                                 rig_.control, "agree on the number of calls"));
      spent += added;
      if (spent >= options().min_seconds) return {};
      if (options().mode == Mode::Latency) batch = std::min(2 * batch, 1 << 16);
    }
  }

  Outcome time_each(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      const bool verified = verifies(i, iterations);
      if (verified) prepare();
      CCOM_LAUNCH_TRY(barrier());
      const Clock::time_point begin = Clock::now();
      CCOM_LAUNCH_TRY(invoke(1));
      seconds_.push_back(seconds_since(begin) / group());
      if (verified) CCOM_LAUNCH_TRY(verify());
      if (options().overlap) CCOM_LAUNCH_TRY(time_overlap(verified));
    }
    return {};
  }

  // About as long as a call alone, and equal on every rank.
  Outcome choose_computation() {
    constexpr int kCalls = 9;
    std::vector<double> calls(kCalls);
    for (double& call_seconds : calls) {
      CCOM_LAUNCH_TRY(barrier());
      const Clock::time_point begin = Clock::now();
      CCOM_LAUNCH_TRY(invoke(1));
      call_seconds = seconds_since(begin);
    }
    CCOM_LAUNCH_TRY(slowest_of_all(&calls, "agree on the computation"));
    std::ranges::sort(calls);
    compute_.calibrate();
    rounds_ = compute_.rounds_for(percentile(calls, 0.5));
    return {};
  }

  Outcome time_overlap(bool verified) {
    CCOM_LAUNCH_TRY(barrier());
    Clock::time_point begin = Clock::now();
    compute_.run(rounds_);
    compute_seconds_.push_back(seconds_since(begin));
    if (verified) prepare();
    CCOM_LAUNCH_TRY(barrier());
    begin = Clock::now();
    CCOM_LAUNCH_TRY(enqueue(1));
    compute_.run(rounds_);
    CCOM_LAUNCH_TRY(synchronize());
    both_seconds_.push_back(seconds_since(begin));
    return verified ? verify() : Outcome{};
  }

  Outcome time_together(int iterations) {
    const bool verified = verifies(0, 1);
    if (verified) prepare();
    CCOM_LAUNCH_TRY(barrier());
    const Clock::time_point begin = Clock::now();
    CCOM_LAUNCH_TRY(invoke(iterations));
    seconds_.push_back(seconds_since(begin) / iterations / group());
    if (!verified) return {};
    if (case_.in_place && iterations > 1) {  // Otherwise results would be the next call's inputs.
      prepare();
      CCOM_LAUNCH_TRY(invoke(1));
    }
    return verify();
  }

  Outcome barrier() {
    return outcome_of(ccomBarrier(rig_.control, nullptr), rig_.control, "barrier before a timed call");
  }

  Outcome invoke(int times) {
    CCOM_LAUNCH_TRY(enqueue(times));
    return synchronize();
  }

  // On the NULL stream they are complete on return.
  Outcome enqueue(int times) {
    ccomResult_t result = ccomSuccess;
    for (int i = 0; i < times && result == ccomSuccess; ++i) {
      result = options().group == 0 ? call_with(calls_[0]) : call_as_group();
    }
    return outcome_of_call(result);
  }

  ccomResult_t call_with(const Pointers& pointers) {
    return call(case_, counts_, rank(), pointers.send, pointers.recv, op_.get(), rig_.comm, rig_.stream);
  }

  ccomResult_t call_as_group() {
    ccomResult_t first = ccomGroupStart();
    if (first != ccomSuccess) return first;
    for (const Pointers& pointers : calls_) {
      const ccomResult_t result = call_with(pointers);
      if (first == ccomSuccess) first = result;
    }
    const ccomResult_t ended = ccomGroupEnd();
    return first != ccomSuccess ? first : ended;
  }

  Outcome synchronize() {
    return rig_.stream == nullptr ? Outcome{} : outcome_of_call(ccomStreamSynchronize(rig_.stream, -1));
  }

  Outcome outcome_of_call(ccomResult_t result) const {
    return result == ccomSuccess ? Outcome{} : outcome_of(result, rig_.comm, text_of(case_).c_str());
  }

  // New data, and no remains of the correct result in the receive buffer.
  void prepare() {
    ++iteration_;
    buffers_.send_area().write_guards();
    buffers_.recv_area().write_guards();
    for (size_t member = 0; member < calls_.size(); ++member) {
      const auto [send, recv] = calls_[member];
      if (layout_.has_recv)
        std::memset(recv, 0x5a ^ static_cast<int>(iteration_ & 1), layout_.recv_count * element_bytes_);
      if (layout_.has_send) fill(case_.pattern(), own_input(member), send);
    }
  }

  // Every call of a group has data of its own.
  uint64_t iteration_of(size_t member) const { return iteration_ * calls_.size() + member; }
  Stretch own_input(size_t member) const {
    return {.iteration = iteration_of(member), .source = rank(), .first = 0, .count = layout_.send_count};
  }

  Outcome verify() {
    for (size_t member = 0; member < calls_.size(); ++member) verify(member);
    const size_t damaged = buffers_.send_area().damaged_guards() + buffers_.recv_area().damaged_guards();
    if (damaged > 0)
      count_wrong({.wrong = damaged, .index = 0, .got = "a write", .expected = "none"}, 0, "byte outside the buffer");
    return compare_ranks();
  }

  void verify(size_t member) {
    const auto [send, recv] = calls_[member];
    for (const Arrival& arrival : arrivals(case_, rank(), iteration_of(member))) {
      count_wrong(check(case_.pattern(), arrival.stretch, recv + arrival.offset * element_bytes_), arrival.offset,
                  "element");
    }
    if (layout_.has_send && !case_.in_place)
      count_wrong(check(case_.pattern(), own_input(member), send), 0, "element of the send buffer");
  }

  void count_wrong(const Verdict& verdict, size_t offset, const char* what) {
    if (verdict.wrong > 0 && wrong_ == 0) {
      std::fprintf(
          stderr, "ccom-bench: wrong: %s, call %" PRIu64 ", rank %d, %s %zu: got %s, expected %s (%" PRIu64 " wrong)\n",
          text_of(case_).c_str(), iteration_, rank(), what, offset + verdict.index, verdict.got.c_str(),
          verdict.expected.c_str(), verdict.wrong);
    }
    wrong_ += verdict.wrong;
  }

  // Where all ranks must have equal results, they must be bitwise equal, even where the check tolerates rounding.
  Outcome compare_ranks() {
    const Collective collective = plain_of(case_.collective);
    if (collective != Collective::AllReduce && collective != Collective::AllGather &&
        collective != Collective::Broadcast)
      return {};
    uint64_t hash = 0;
    for (const Pointers& each : calls_) hash = 31 * hash + hash_bytes(each.recv, layout_.recv_count * element_bytes_);
    uint64_t least = hash;
    uint64_t most = hash;
    for (auto [value, op] : {std::pair{&least, ccomMin}, std::pair{&most, ccomMax}}) {
      CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(value, value, 1, ccomUint64, op, rig_.control, nullptr), rig_.control,
                                 "compare results between ranks"));
    }
    if (least == most || rank() != 0) return {};
    if (wrong_ == 0)
      std::fprintf(stderr, "ccom-bench: wrong: %s, call %" PRIu64 ": results differ between ranks\n",
                   text_of(case_).c_str(), iteration_);
    ++wrong_;
    return {};
  }

  const Rig& rig_;
  const Case case_;
  const Layout layout_;
  const size_t element_bytes_;
  const Buffers& buffers_;
  const Counts counts_;
  std::vector<Pointers> calls_;  // Of a group.
  Operator op_;
  uint64_t iteration_ = 0;
  Compute compute_;
  uint64_t rounds_ = 1;
  std::vector<double> seconds_, compute_seconds_, both_seconds_;
  uint64_t wrong_ = 0;
};

}  // namespace

Outcome measure(const Rig& rig, const Case& what, const Buffers& buffers, Measurement* measurement) {
  return Row(rig, what, buffers).run(measurement);
}

}  // namespace ccom::bench
