// SPDX-License-Identifier: Apache-2.0
#include "liveness/consensus.h"

namespace ccom {
namespace {

constexpr uint64_t round_of(uint64_t word) { return word >> 2; }

}  // namespace

ConsensusRound::Progress ConsensusRound::step(const Views& views) {
  switch (phase_) {
    case Phase::Say: say(); break;
    case Phase::Enter: enter(); break;
    case Phase::Settle: return settle(views);
    case Phase::Read: read(); break;
    case Phase::Check: check(); break;
    case Phase::Done: break;
  }
  return phase_ == Phase::Done ? Progress::Done : Progress::Going;
}

void ConsensusRound::say() {
  ConsensusSlot::Entry& own = entry(static_cast<size_t>(self_));
  phase_ = Phase::Enter;
  if (round_of(own.word.load()) >= round_) return;  // it was put Out: nobody reads what it says
  own.call.store(mine_.call, std::memory_order_relaxed);
  own.flags.store(mine_.flags, std::memory_order_relaxed);
  for (size_t i = 0; i < mine_.payload.size(); ++i) own.payload[i].store(mine_.payload[i], std::memory_order_relaxed);
}

void ConsensusRound::enter() {
  std::atomic<uint64_t>& word = entry(static_cast<size_t>(self_)).word;
  uint64_t known = word.load();
  phase_ = Phase::Settle;
  if (round_of(known) < round_ && word.compare_exchange_strong(known, word_of(State::In))) return;
  if (known != word_of(State::Late)) leave_out();  // of a rank that is late all hear
}

// Looks at one slot, or settles it.
ConsensusRound::Progress ConsensusRound::settle(const Views& views) {
  if (next_ == slots_.size()) {
    phase_ = Phase::Read;
    next_ = 0;
    return Progress::Going;
  }
  std::atomic<uint64_t>& word = entry(next_).word;
  uint64_t known = word.load();
  const auto slot = static_cast<int>(next_);
  if (round_of(known) > round_) {
    leave_out();
    return Progress::Done;
  }
  if (round_of(known) < round_) {
    const bool is_lost = views.is_lost(slot);
    if (!is_lost && !views.is_over()) return Progress::Waiting;
    word.compare_exchange_strong(known, word_of(is_lost ? State::Out : State::Late));
    return Progress::Going;
  }
  if (known == word_of(State::In)) outcome_.in.push_back(slot);
  if (known == word_of(State::Out)) outcome_.out.push_back(slot);
  if (known == word_of(State::Late)) outcome_.late.push_back(slot);
  ++next_;
  return Progress::Going;
}

// What one of those says that are In.
void ConsensusRound::read() {
  if (next_ == outcome_.in.size()) {
    phase_ = Phase::Check;
    return;
  }
  const int slot = outcome_.in[next_];
  const ConsensusSlot::Entry& said = entry(static_cast<size_t>(slot));
  const uint64_t call = said.call.load(std::memory_order_acquire);
  const uint64_t flags = said.flags.load(std::memory_order_acquire);
  if (next_ == 0) {
    first_call_ = call;
    outcome_.flags = flags;
    for (size_t i = 0; i < outcome_.payload.size(); ++i)
      outcome_.payload[i] = said.payload[i].load(std::memory_order_acquire);
  }
  outcome_.flags &= flags;
  if (call != first_call_ && !outcome_.different) outcome_.different = slot;
  ++next_;
}

// What was read may be of the next round but one only if this rank was put Out of the next one before.
void ConsensusRound::check() {
  const auto self = static_cast<size_t>(self_);
  const uint64_t next = slots_[self]->entries[(round_ + 1) % 2].word.load();
  const uint64_t now = entry(self).word.load();
  if (round_of(next) > round_ || round_of(now) > round_) return leave_out();
  phase_ = Phase::Done;
}

void ConsensusRound::leave_out() {
  outcome_ = {};
  outcome_.is_self_out = true;
  phase_ = Phase::Done;
}

}  // namespace ccom
