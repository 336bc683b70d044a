// SPDX-License-Identifier: Apache-2.0
//
// Collectives of equal units: made ready once, and run.
#include <cstring>
#include <numeric>

#include "comm/communicator.h"
#include "kernels/kernels.h"

namespace ccom {

// A call of that size and kind is the next one. Returns its numbered() word.
inline uint64_t Communicator::begin_call(CallDescriptor& call) {
  call.number = sequence_.load(std::memory_order_relaxed) + 1;
  call.results = results_;
  sequence_.store(call.number, std::memory_order_relaxed);
  const uint64_t word = numbered(call.number, history_);
  history_ = extend(history_, call);
  return word;
}

// A collective. Only by whoever has the turn.
Envelope Communicator::begin_call(const Request& request) {
  Envelope envelope = describe(request, membership_.communicator, 0, 0);
  CallDescriptor call{.count = request.count, .kind = envelope.words[3]};
  envelope.words[1] = begin_call(call);
  links_->monitor().begin_call(call, request.site, request.count * size_of(request.type));
  return envelope;
}

bool Communicator::is_in_place(const Request& request) const {
  return buffer_use(request.collective, membership_.rank, membership_.nranks, request.root,
                    request.count * size_of(request.type))
      .is_in_place(request.input, request.output);
}

ProgramKey Communicator::key_of(const Request& request) const {
  return {request.collective, request.type, request.op, is_in_place(request), request.root, request.count};
}

size_t Communicator::input_elements(const Request& request) const {
  if (request.shares != nullptr) {  // of a reduce-scatter
    return std::accumulate(request.shares->sent.begin(), request.shares->sent.end(), size_t{0});
  }
  return request.count * input_units(request.collective, membership_.nranks, membership_.rank == request.root);
}

const std::byte* Communicator::multiply_input(const Request& request) {
  const size_t elements = input_elements(request);
  multiplied_.resize(elements * size_of(request.type));
  multiply(request.type, request.multiplier, request.input, multiplied_.data(), elements);
  return multiplied_.data();
}

// Of a call that cannot be made ready. A connection that ended between two calls, or a transport that an error has
// stopped, says less than the communicator's error; another reason is this call's alone.
Status Communicator::refuse(const Envelope& envelope, const Status& reason) {
  const bool is_loss = reason.code() == Code::RemoteError || reason.code() == Code::TransportError;
  if (!is_loss && !links_->monitor().failed()) return reason;
  return finish(envelope, engine_->fail(reason));
}

// Not a call whose operator, multiplier or rounding seed is another one each time, nor one that does more than run.
bool Communicator::is_prepared(const Request& request) {
  const bool is_v = request.shares != nullptr;
  if (is_v && (request.shares->equal == 0 || !runs_v_form_in_memory(request.collective))) return false;
  if (is_v && request.collective == Collective::AllToAll && !are_parts_alike_) return false;
  return request.multiplier == nullptr && request.user == nullptr && request.residual == nullptr && !request.is_group &&
         config_.rounding == Rounding::NearestEven && !config_.witness;
}

PreparedCall& Communicator::prepare(const Request& request) {
  const uint64_t kind = describe(request, membership_.communicator, 0, 0).words[3];
  const size_t count = request.shares != nullptr ? request.shares->equal : request.count;
  if (PreparedCall* const known = prepared_.find(kind, count)) return *known;
  return prepared_.add(kind, count, prepared(request));
}

PreparedCall Communicator::prepared(const Request& request) {
  CallWords words = describe(request, membership_.communicator, 0, 0).words;
  const bool is_v = request.shares != nullptr;
  if (is_v) {
    words[2] = moves_units(request.collective) ? hash_of_units(request.collective, *request.shares)
                                               : ShmCollectives::word_of_equal(request.shares->equal);
  }
  const size_t count = is_v ? request.shares->equal : request.count, unit_bytes = count * size_of(request.type);
  PreparedCall call{
      .words = words,
      .hash = hash_of(words) ^ hash_part(1, words[1]),
      .count = count,
      .is_v = is_v,
      .unit_bytes = unit_bytes,
      .buffers = buffer_use(request.collective, membership_.rank, membership_.nranks, request.root, unit_bytes),
      .counters = &links_->monitor().activity().cell_of(words[3], unit_bytes)};
  if (small_calls_.serves(request.collective, unit_bytes)) {
    call.small = host_->small_call(request.collective, request.root, request.type, count);
    if (reduces(request.collective)) call.small->reducer = reducer_of(request);
  }
  return call;
}

Result<std::optional<PreparedCall>> Communicator::prepare_alone(const Request& request) {
  Turns::Ticket place = turns_.take();
  turns_.wait_for_all(place);
  std::optional<PreparedCall> call;
  CCOM_TRY(in_turn(place, [&]() -> Status {
    if (is_prepared(request)) call = prepared(request);
    if (call && !call->small) (void)program_of(*call, is_in_place(request));  // an error is the first call's
    return {};
  }));
  return call;
}

Status Communicator::run(PreparedCall& call, const Request& request) {
  Turns::Ticket place = turns_.take();
  if (!wait_for_turn(place)) [[unlikely]]
    return leave(place);
  return in_turn(place, [&] {
    if (is_finalized()) [[unlikely]]
      return refuse_finalized();
    return run_prepared(call, request.input, request.output, request.timeout_ms, request.site);
  });
}

Reducer Communicator::reducer_of(const Request& request) const {
  const bool divides = request.op == ReduceOp::Avg;
  return Reducer({request.type, request.op, divides ? static_cast<uint32_t>(membership_.nranks) : 0, config_.rounding,
                  rounding_seed(), request.user});
}

uint64_t Communicator::rounding_seed() const {
  return config_.rounding == Rounding::Stochastic ? ccom::rounding_seed(config_.rounding_seed, sequence()) : 0;
}

[[gnu::always_inline]] inline Status Communicator::run_prepared(PreparedCall& call, const std::byte* input,
                                                                std::byte* output, int64_t timeout_ms, CallSite site) {
  CallDescriptor descriptor{.count = call.is_v ? 0 : call.count, .kind = call.words[3]};
  if (call.is_v) host_->show_equal_counts(call.count);
  call.words[1] = begin_call(descriptor);
  ActivityWriter& activity = links_->monitor().activity();
  activity.begin(descriptor, site, call.unit_bytes, *call.counters);
  const EndOfCall end(activity);
  const SmallBuffers buffers{input, output, call.buffers.is_in_place(input, output)};
  if (call.small) [[likely]] {
    Status status = host_->run_small(*call.small, buffers, call.words, call.hash ^ hash_part(1, call.words[1]),
                                     std::chrono::milliseconds(timeout_ms));
    if (status.is_ok()) [[likely]]
      return status;
    if (!are_parts_unlike(call)) return finish({call.words}, std::move(status));
  } else {
    Status status = run_prepared_program(call, buffers, timeout_ms);
    if (!are_parts_unlike(call)) [[likely]]
      return status;
  }
  return exchange_after_all(call, input, output, timeout_ms);
}

std::optional<Status> Communicator::run_known(uint64_t kind, size_t count, const void* input, void* output,
                                              const void* caller) {
  Turns::Ticket place = turns_.take();
  if (!wait_for_turn(place)) [[unlikely]]
    return leave(place);
  PreparedCall* const call = prepared_.find(kind, count);
  if (call == nullptr || !call->takes(input, output) || is_finalized()) [[unlikely]] {
    turns_.pass(place);
    return std::nullopt;
  }
  return in_turn(place, [&] {
    return run_prepared(*call, static_cast<const std::byte*>(input), static_cast<std::byte*>(output), timeout_ms(),
                        call->site.of(caller));
  });
}

Result<const BoundProgram*> Communicator::program_of(PreparedCall& call, bool in_place) {
  return programs_->get(call.programs[in_place ? 1 : 0], [&] {
    const CallKind kind = parts_of(call.words[3]);
    return ProgramKey{kind.collective, kind.type, kind.op, in_place, kind.root, call.count};
  });
}

Status Communicator::run_prepared_program(PreparedCall& call, const SmallBuffers& buffers, int64_t timeout_ms) {
  const Result<const BoundProgram*> bound = program_of(call, buffers.in_place);
  if (!bound) {
    Status refused = refuse({call.words}, bound.error());
    links_->monitor().activity().set_result(refused);
    return refused;
  }
  return run_bound(
      **bound, {.input = buffers.input, .output = buffers.output, .envelope = {call.words}, .timeout_ms = timeout_ms});
}

Status Communicator::run_in_turn(const Request& request) {
  if (is_prepared(request)) [[likely]]
    return run_prepared(prepare(request), request.input, request.output, request.timeout_ms, request.site);
  const Envelope envelope = begin_call(request);
  const EndOfCall end(links_->monitor().activity());
  Status status = request.shares != nullptr ? run_v_form(envelope, request) : run_as(envelope, request);
  if (meets_at_end(request) && status.is_ok()) [[unlikely]]
    status = meet_at_end(envelope, request);
  if (config_.witness && status.is_ok()) witness_result(request);
  links_->monitor().activity().set_result(status);
  return status;
}

// A collective of equal units, as a call or a part of one, which the envelope stands for.
Status Communicator::run_as(const Envelope& envelope, const Request& request) {
  if (request.residual != nullptr) [[unlikely]]
    std::memset(request.residual, 0, request.count * sizeof(float));
  const bool is_small = small_calls_.serves(request.collective, request.count * size_of(request.type));
  return is_small ? run_small(envelope, request) : run_program(envelope, request, key_of(request));
}

// What fits into arrival lines goes there at once: no clock.
Status Communicator::run_small(const Envelope& envelope, const Request& request) {
  std::optional<SmallCall> call = host_->small_call(request.collective, request.root, request.type, request.count);
  if (reduces(request.collective)) call->reducer = reducer_of(request);
  call->user = request.user;
  const SmallBuffers buffers{request.multiplier != nullptr ? multiply_input(request) : request.input, request.output,
                             is_in_place(request)};
  return finish(envelope, host_->run_small(*call, buffers, envelope.words, hash_of(envelope.words),
                                           std::chrono::milliseconds(request.timeout_ms)));
}

Status Communicator::run_program(const Envelope& envelope, const Request& request, const ProgramKey& key) {
  const Result<const BoundProgram*> bound = programs_->get(key);
  if (!bound) return refuse(envelope, bound.error());
  return run_bound(**bound, {.input = request.multiplier != nullptr ? multiply_input(request) : request.input,
                             .output = request.output,
                             .residual = request.residual,
                             .envelope = envelope,
                             .timeout_ms = request.timeout_ms,
                             .rounding = config_.rounding,
                             .seed = rounding_seed(),
                             .user = request.user});
}

Status Communicator::run_bound(const BoundProgram& program, const ProgramCall& call) {
  links_->monitor().activity().set_algorithm(program.program().algorithm, program.compiled->algorithm_hash);
  Status status = runner_->run(program, call);
  if (host_ != nullptr && host_->has_unlike_parts()) return status;  // no error: exchange_after_all() follows
  if (recorder_) note_way(program);
  return finish(call.envelope, std::move(status));
}

}  // namespace ccom
