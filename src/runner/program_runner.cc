// SPDX-License-Identifier: Apache-2.0
#include "runner/program_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/assert.h"
#include "kernels/scaled_blocks.h"
#include "memory/process_memory.h"

namespace ccom {

static_assert(kTilesUnderWay <= Engine::kMostStarted);

// One call under way.
class ProgramRunner::Run {
 public:
  Run(const Parts& parts, const BoundProgram& bound, const ProgramCall& call, std::byte* banks)
      : parts_(parts), bound_(bound), call_(call), banks_(banks) {
    // A call of one part looks at no clock until it has to wait.
    if (bound.order.size() > 1 || !bound.program().is_node()) deadline_ = Deadline::after_ms(call.timeout_ms);
  }

  Status run() {
    for (const Part& part : bound_.order) CCOM_TRY(run_part(part));
    return {};
  }

 private:
  Status run_part(const Part& part) {
    switch (bound_.compiled->stages[part.stage].kind) {
      case CompiledStage::Kind::Copy: return part.kind == Part::Kind::Finish ? Status() : copy(part);
      case CompiledStage::Kind::Host: return run_host(part);
      case CompiledStage::Kind::Messages: return run_messages(part);
      default: return {};
    }
  }

  Status run_messages(const Part& part) {
    const size_t slot = part.tile % kTilesUnderWay;
    if (part.kind == Part::Kind::Finish) return parts_.engine.finish(slot, *deadline_);
    const std::vector<std::shared_ptr<const BoundPlan>>& lanes = bound_.stage(part).plans;
    const Operation operation{.plan = lanes[part.tile % lanes.size()].get(),
                              .input = input(Memory::Input, part.tile),
                              .output = output(Memory::Output, part.tile),
                              .bank = output(Memory::Bank, part.tile),
                              .envelope = envelope(part),
                              .contributions = static_cast<uint32_t>(bound_.program().nranks),
                              .user = call_.user,
                              .rounding = call_.rounding,
                              .seed = call_.seed,
                              .first_element = first_element(part.tile),
                              .loss = lost_in(part)};
    if (part.kind == Part::Kind::Run) return parts_.engine.run({&operation, 1}, *deadline_);
    return parts_.engine.start(slot, operation);
  }

  Status run_host(const Part& part) {
    if (parts_.host == nullptr) {
      return parts_.engine.fail(error(Code::InternalError, "%s needs shared memory, which its host's ranks do not use",
                                      bound_.program().algorithm.c_str()));
    }
    const BoundStage& stage = bound_.stage(part);
    NodeCall node = stage.host;
    node.input = input(stage.input, part.tile);
    node.output = output(stage.output, part.tile);
    node.rounding = call_.rounding;
    node.seed = call_.seed;
    node.user = call_.user;
    if (call_.views != nullptr) [[unlikely]] {
      node.views = call_.views;
      node.bound = nullptr;
    }
    const int64_t left_ms = deadline_ ? std::max<int64_t>(deadline_->left_ms(), 1) : call_.timeout_ms;
    return parts_.host->run(node, envelope(part).words, std::chrono::milliseconds(left_ms));
  }

  // A sum of one contribution is divided, or normalised to 0 and 1. Or what is given is converted.
  Status copy(const Part& part) {
    const Stage& stage = bound_.program().stages[part.stage];
    const bool completes = stage.sums && stage.completes;
    const bool divides = completes && bound_.binding.op == ReduceOp::Avg;
    const DataType type = bound_.stage(part).type, gotten = data_type(stage.gets_type, bound_.binding.type);
    const Reduction reduction{
        type, bound_.binding.op, divides ? static_cast<uint32_t>(bound_.program().nranks) : 0, Rounding::NearestEven,
        0,    call_.user};
    for (const BoundStage::Copy& copy : bound_.stage(part).copies) {
      const std::byte* const from = input(copy.from.memory, part.tile) + copy.from.offset;
      std::byte* const to = output(copy.to.memory, part.tile) + copy.to.offset;
      const size_t elements = elements_for(type, copy.elements);
      if (type != gotten && rounds_at_random(type, gotten)) {
        convert_at_random(gotten, from, to, copy.elements, {call_.seed, first_element(part.tile) + copy.place});
      } else if (type != gotten) {
        convert(type, gotten, from, to, copy.elements);
        if (call_.residual != nullptr && is_block(gotten)) [[unlikely]]
          write_loss(gotten, from, to, residual(part.tile) + copy.place * sizeof(float), copy.elements);
      } else if (completes) {
        reduce(reduction, {&from, 1}, to, elements);
      } else if (from != to && elements > 0) {
        std::memmove(to, from, elements * size_of(type));
      }
    }
    return {};
  }

  // Sums that crossed hosts as float32.
  bool rounds_at_random(DataType type, DataType gotten) const {
    return call_.rounding == Rounding::Stochastic && type == DataType::Float32 && is_narrow_float(gotten);
  }

  const std::byte* input(Memory memory, size_t tile) const {
    if (memory != Memory::Input) return output(memory, tile);
    return call_.input == nullptr ? nullptr : call_.input + tile * bound_.tile_bytes;
  }
  // Of a tile; null where there is no such buffer. Nobody writes through Memory::Input.
  std::byte* output(Memory memory, size_t tile) const {
    if (memory == Memory::Bank) return banks_ + tile % kTilesUnderWay * bound_.bank_bytes;
    return call_.output == nullptr ? nullptr : call_.output + tile * bound_.tile_bytes;
  }
  size_t first_element(size_t tile) const { return tile * (bound_.tile_bytes / size_of(bound_.binding.type)); }
  std::byte* residual(size_t tile) const { return call_.residual + first_element(tile) * sizeof(float); }
  std::span<std::byte> lost_in(const Part& part) const {
    const BoundStage::Encoded& encoded = bound_.stage(part).encoded;
    if (call_.residual == nullptr || encoded.elements == 0) return {};
    return {residual(part.tile) + encoded.place * sizeof(float), encoded.elements * sizeof(float)};
  }
  Envelope envelope(const Part& part) const {
    Envelope envelope = call_.envelope;
    envelope.words[4] = part.tile * bound_.program().stages.size() + part.stage;
    return envelope;
  }

  const Parts& parts_;
  const BoundProgram& bound_;
  const ProgramCall& call_;
  std::byte* const banks_;
  std::optional<Deadline> deadline_;
};

ProgramRunner::ProgramRunner(Parts parts, Rank rank, size_t most_memory)
    : parts_(parts), rank_(rank), most_memory_(most_memory) {}

ProgramRunner::~ProgramRunner() {
  const Status freed = free_shareable(banks_);
  CCOM_ASSERT(freed.is_ok());
}

Status ProgramRunner::run(const BoundProgram& program, const ProgramCall& call) {
  CCOM_TRY(reserve_banks(program, call));
  return Run(parts_, program, call, banks_).run();
}

// From memory that the ranks of the host can map, if there is such.
Status ProgramRunner::reserve_banks(const BoundProgram& program, const ProgramCall& call) {
  const size_t banks = kTilesUnderWay * program.bank_bytes;
  if (const size_t needed = banks + program.scratch_bytes; needed > most_memory_) {
    return parts_.engine.fail(error(ErrorKey::ScratchLimit, "rank %d: %s needs %zu bytes of scratch, maxMemory is %zu",
                                    rank_, parts_.names.describe_call(call.envelope).c_str(), needed, most_memory_)
                                  .with_cure("raise maxMemory (CCOM_MAX_MEMORY) or split the call"));
  }
  if (banks <= banks_bytes_) return {};
  const Status freed = free_shareable(banks_);
  CCOM_ASSERT(freed.is_ok());
  banks_ = nullptr;
  banks_bytes_ = 0;
  Result<void*> memory = allocate_shareable(banks);
  if (!memory) return parts_.engine.fail(memory.error());
  banks_ = static_cast<std::byte*>(*memory);
  banks_bytes_ = banks;
  return {};
}

}  // namespace ccom
