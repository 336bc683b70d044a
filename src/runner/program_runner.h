// SPDX-License-Identifier: Apache-2.0
//
// Runs programs: the parts of all tiles in the one order that every rank keeps (order_of()), stages of a host through
// its shared memory, stages of messages by the engine, which moves those of other tiles while a rank works inside its
// host. Ranks never wait for each other in a circle, because of that order.
//
// Each part of a call has words of its own (Envelope::words[4] numbers parts), equal on all ranks, so that ranks that
// make different calls notice.
#pragma once

#include <chrono>
#include <memory>

#include "engine/engine.h"
#include "node/shm_collectives.h"
#include "runner/bound_program.h"

namespace ccom {

// A call of a bound program. Buffers are borrowed.
struct ProgramCall {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  const NodeViews* views = nullptr;  // of an alltoall through memory whose units differ: where they lie
  std::byte* residual = nullptr;     // float32 as `output` has elements: what is lost where this rank encodes; or null
  Envelope envelope;                 // of part 0
  int64_t timeout_ms = 0;
  Rounding rounding = Rounding::NearestEven;  // other than to nearest: only programs that round a sum once
  uint64_t seed = 0;
  UserOperator* user = nullptr;  // of programs bound to a user's operator
};

// Belongs to one thread at a time. An error of run() is final.
class ProgramRunner {
 public:
  struct Parts {
    ShmCollectives* host = nullptr;  // over the ranks of this rank's host; null: there is none
    Engine& engine;
    ChannelSource& channels;
    const CallNames& names;
  };
  // All references outlive it. most_memory: bytes of scratch that a call may take.
  ProgramRunner(Parts parts, Rank rank, size_t most_memory);
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  Result<std::shared_ptr<const BoundProgram>> bind(std::shared_ptr<const CompiledProgram> program,
                                                   const ProgramBinding& binding) {
    return ccom::bind(std::move(program), binding, parts_.channels);
  }
  // Blocking. Every rank makes the call, with a program bound to the same values.
  Status run(const BoundProgram& program, const ProgramCall& call);
  // Scratch that is kept for the next call.
  uint64_t memory_bytes() const { return banks_bytes_; }

 private:
  class Run;

  Status reserve_banks(const BoundProgram& program, const ProgramCall& call);

  const Parts parts_;
  const Rank rank_;
  const size_t most_memory_;
  std::byte* banks_ = nullptr;  // kTilesUnderWay of them
  size_t banks_bytes_ = 0;
};

}  // namespace ccom
