// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_text.h"

#include <array>
#include <charconv>

#include "plan/print.h"

namespace ccom {
namespace {

constexpr std::array<std::string_view, 3> kBuffers = {"in", "out", "tmp"};

// `count` places of a buffer.
struct Run {
  Buffer buffer = Buffer::Input;
  uint32_t first = 0, count = 1;
};

// Reads from the front; once something is missing nothing more is found.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { skip_spaces(); }

  bool take(std::string_view token) {
    if (failed_ || !rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  void expect(std::string_view token) { failed_ |= !take(token); }

  uint32_t number(uint32_t most = UINT32_MAX) {
    uint32_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    failed_ |= problem != std::errc{} || value > most;
    if (failed_) return 0;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip_spaces();
    return value;
  }

  Run run() {
    Run run;
    size_t buffer = 0;
    while (buffer < kBuffers.size() && !take(kBuffers[buffer])) ++buffer;
    failed_ |= buffer == kBuffers.size();
    run.buffer = static_cast<Buffer>(buffer % kBuffers.size());
    expect("[");
    run.first = number();
    const uint32_t last = take("..") ? number(UINT32_MAX - 1) : run.first;
    expect("]");
    failed_ |= last < run.first;
    run.count = last - run.first + 1;
    return run;
  }

  void refuse_if(bool wrong) { failed_ |= wrong; }
  bool is_done() const { return !failed_ && rest_.empty(); }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
  bool failed_ = false;
};

uint32_t block_of_run(const Step& step) {
  if (step.writes_target() && step.target_buffer != Buffer::Scratch) return step.target;
  return step.reads_source() && step.source_buffer != Buffer::Scratch ? step.source : 0;
}

void set_source(Step& step, const Run& run) {
  step.source_buffer = run.buffer;
  step.source = run.first;
  step.count = run.count;
}

// Its length is that of the source, if there is one.
void read_target(Scanner& scanner, Step& step) {
  const Run run = scanner.run();
  step.target_buffer = run.buffer;
  step.target = run.first;
  step.count = run.count;
}

void read_source(Scanner& scanner, Step& step) {
  const Run run = scanner.run();
  scanner.refuse_if(run.count != step.count);
  set_source(step, run);
}

void read_peer(Scanner& scanner, Step& step) {
  scanner.expect("rank");
  step.peer = static_cast<Rank>(scanner.number(INT32_MAX));
  if (scanner.take("channel")) step.channel = static_cast<uint8_t>(scanner.number(UINT8_MAX));
  if (scanner.take("egress")) step.egress = static_cast<uint8_t>(scanner.number(UINT8_MAX));
}

// Runs of scratch that follow one another.
void read_inputs(Scanner& scanner, Step& step) {
  read_source(scanner, step);
  for (step.inputs = 1; scanner.take("+"); ++step.inputs) {
    const Run run = scanner.run();
    scanner.refuse_if(run.buffer != step.source_buffer || run.count != step.count ||
                      run.first != step.source + step.inputs * step.count || step.inputs == UINT16_MAX);
  }
}

void read_step(Scanner& scanner, Step& step) {
  if (scanner.take("send")) {
    step.kind = StepKind::Send;
    set_source(step, scanner.run());
    scanner.expect("->");
    read_peer(scanner, step);
  } else if (scanner.take("recv-reduce")) {
    step.kind = StepKind::ReceiveReduce;
    read_target(scanner, step);
    scanner.expect("=");
    read_source(scanner, step);
    scanner.expect("+");
    read_peer(scanner, step);
  } else if (scanner.take("recv")) {
    step.kind = StepKind::Receive;
    read_target(scanner, step);
    scanner.expect("<-");
    read_peer(scanner, step);
  } else if (scanner.take("copy")) {
    step.kind = StepKind::Copy;
    read_target(scanner, step);
    scanner.expect("=");
    read_source(scanner, step);
  } else if (scanner.take("permute")) {
    step.kind = StepKind::Permute;
    read_target(scanner, step);
    scanner.expect("=");
    read_source(scanner, step);
    scanner.expect("by");
    step.inputs = static_cast<uint16_t>(scanner.number(UINT16_MAX));
  } else {
    scanner.expect("reduce");
    step.kind = StepKind::Reduce;
    read_target(scanner, step);
    scanner.expect("=");
    read_inputs(scanner, step);
  }
}

}  // namespace

std::string plan_text(const Step& step) {
  const std::string text = to_text(step);
  return step.block == block_of_run(step) ? text : text + ", block " + std::to_string(step.block);
}

std::optional<Step> step_from(std::string_view text) {
  Scanner scanner(text);
  Step step{.kind = StepKind::Copy};
  read_step(scanner, step);
  step.block = block_of_run(step);
  while (scanner.take(",")) {
    if (scanner.take("complete")) {
      step.completes = true;
    } else {
      scanner.expect("block");
      step.block = scanner.number();
    }
  }
  return scanner.is_done() ? std::optional(step) : std::nullopt;
}

std::string plan_text(const BlockAt& at) {
  return std::to_string(at.block) + "@" + std::string(kBuffers[static_cast<size_t>(at.buffer)]) + "[" +
         std::to_string(at.index) + "]";
}

std::optional<BlockAt> block_from(std::string_view text) {
  Scanner scanner(text);
  BlockAt at{.block = scanner.number()};
  scanner.expect("@");
  const Run run = scanner.run();
  scanner.refuse_if(run.count != 1);
  at.buffer = run.buffer;
  at.index = run.first;
  return scanner.is_done() ? std::optional(at) : std::nullopt;
}

}  // namespace ccom
