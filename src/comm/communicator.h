// SPDX-License-Identifier: Apache-2.0
//
// The composition root: what a ccomComm_t is. Builds topology, links, engine and runner, and runs calls on them in
// turn.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/wait_limit.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/unique_id.h"
#include "comm/prepared_calls.h"
#include "comm/program_cache.h"
#include "comm/request.h"
#include "comm/small_calls.h"
#include "comm/transfer_plans.h"
#include "comm/turns.h"
#include "engine/engine.h"
#include "messages/messages.h"
#include "node/shm_collectives.h"
#include "observe/recorder.h"
#include "observe/straggler_report.h"
#include "runner/program_runner.h"
#include "setup/agreement.h"
#include "setup/comm_setup.h"
#include "setup/config.h"
#include "setup/group_rendezvous.h"
#include "topology/topology.h"

namespace ccom {

// Thread-safe: calls take turns, in the order of their tickets. Error texts begin with the communicator's name.
class Communicator final : public CallNames {
 public:
  // Collective, blocking until `deadline`. `rendezvous` is needed during the call only.
  static Result<std::unique_ptr<Communicator>> create(const Membership& joining, CommConfig config,
                                                      Rendezvous& rendezvous, Deadline deadline);
  // The same for ranks that meet by an id. given_up: see connect_rendezvous().
  static Result<std::unique_ptr<Communicator>> join(const UniqueId& id, int nranks, Rank rank, const CommConfig& config,
                                                    Deadline deadline, Interrupted given_up);
  ~Communicator() override;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Ends it as its destructor does, but where ranks forward messages it goes on doing so as long as others may need it:
  // the last rank of this process waits, for timeout_ms() at most, until the other ranks of its host have left, too.
  static void retire(std::unique_ptr<Communicator> ended);

  // Whether messages, sends and receives to and from that rank are possible: along a link, or forwarded. Any thread.
  bool reaches(Rank peer) const {
    return topology_.linked(membership_.rank, peer) || (messages_ != nullptr && messages_->reaches(peer));
  }
  // Messages, if this communicator carries them, for users or to forward sends; null if not. Any thread.
  const std::shared_ptr<Messages>& messages() const { return messages_; }

  // A place in the order of calls, to be given to run(). One that is destroyed instead is a call that this rank has
  // accepted and will never make: the communicator fails, on all ranks.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), place_(other.place_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Ticket() {
      if (owner_ != nullptr) owner_->lose(place_);
    }

   private:
    friend class Communicator;
    explicit Ticket(Communicator& owner) : owner_(&owner), place_(owner.turns_.take_for_any()) {}
    Turns::Ticket use() {
      owner_ = nullptr;
      return place_;
    }
    Communicator* owner_ = nullptr;  // null: none, or used
    Turns::Ticket place_;
  };
  Ticket take_ticket() { return Ticket(*this); }

  // What a rank asks for when its communicator is split.
  struct SplitRequest {
    int color = 0;      // -1: this rank belongs to none of the new communicators
    int key = 0;        // orders the ranks of a color; equal ones by rank
    CommConfig config;  // of the new communicator, the same on all ranks of a color
  };
  // A communicator of all ranks that give the same color; null without one. Collective over this one, in whose order of
  // calls it stands, and blocking. What fails for the new communicator alone leaves this one as it was.
  Result<std::unique_ptr<Communicator>> split(Ticket ticket, const SplitRequest& request);
  // A communicator of these ranks, which include this one, in this order. Collective over them alone; otherwise as
  // split().
  Result<std::unique_ptr<Communicator>> create_group(Ticket ticket, const std::vector<Rank>& ranks,
                                                     const CommConfig& config);

  // A communicator of these ranks and of others, which join by the id that one of these gives: the first `nranks()` of
  // `nranks`, in the same order. Collective over this one and the new ranks; otherwise as split().
  Result<std::unique_ptr<Communicator>> grow(Ticket ticket, int nranks, const std::optional<UniqueId>& id,
                                             const CommConfig& config);

  // Ends all operations here and on the peers with Revoked. Never waits.
  void revoke();
  struct Agreed {
    uint64_t flags = 0;      // the bitwise and of those of all ranks that are left
    std::vector<Rank> lost;  // the others
  };
  // The same on all ranks that are left, also after an error. Collective over them and blocking: for timeout_ms() at
  // most until all have come. Between hosts, ranks that are silent must be a minority.
  Result<Agreed> agree_on(Ticket ticket, uint64_t flags);
  // A communicator of the ranks that are left, without those in `excluded`, in the order of their ranks here; otherwise
  // as agree_on(). If a rank dies meanwhile, it is one without that rank.
  Result<std::unique_ptr<Communicator>> shrink(Ticket ticket, std::vector<Rank> excluded, const CommConfig& config);

  // Runs the requests one after another; neighbouring sends and receives at the same time. Blocking. Does not wait for
  // calls before it once the communicator has failed.
  Status run(Ticket ticket, const std::vector<Request>& requests);
  Status run(Ticket ticket, const Request& request) { return run_at(ticket.use(), request); }
  // With a ticket of now: a Ticket would be a hundredth of a small call.
  Status run(const Request& request) { return run_at(turns_.take(), request); }
  // The same for a call that this communicator has made before, but for its buffers. nullopt: it has not, or the
  // buffers are not legal; nothing has been done. kind: kind_of() of arguments that need not have been looked at.
  // caller: the place from which the call is made.
  std::optional<Status> run_known(uint64_t kind, size_t count, const void* input, void* output, const void* caller);
  // A call to be made often, ready to run; nothing for one that is made ready each time: a witness or a rounding seed
  // of its own, a user's operator. Waits for calls before it. Local.
  Result<std::optional<PreparedCall>> prepare_alone(const Request& request);
  // That of the same request, but for its time and its place.
  Status run(PreparedCall& call, const Request& request);
  // Waits until everything that has a ticket already is done, and tells all ranks that this one makes no more calls. A
  // Timeout, which is the communicator's error, if that takes longer than timeout_ms(). Returns status().
  Status finalize();

  // Of requests made from now on; who makes one puts it in. Any thread.
  void set_timeout_ms(int64_t timeout_ms) { timeout_ms_.store(timeout_ms, std::memory_order_relaxed); }
  int64_t timeout_ms() const { return timeout_ms_.load(std::memory_order_relaxed); }

  // These bytes must be equal on all ranks: the next call finds out whether they are. Waits for calls before it, and
  // for no rank.
  Status witness(Ticket ticket, ConstBytes data);

  // Ends all operations here and on the peers. Never waits.
  void abort();
  Status status() const;
  // The call that the sticky error hit: name and number, if any.
  struct FailedCall {
    std::string operation;
    uint64_t sequence = 0;
  };
  FailedCall failed_call() const;

  Rank rank() const { return membership_.rank; }
  int nranks() const { return membership_.nranks; }
  // By rank: its rank in the communicator that this one was made from, -1 where there is none.
  const std::vector<Rank>& origins() const { return origins_; }
  const Topology& topology() const { return topology_; }
  const CommConfig& config() const { return config_; }
  std::string transport_names() const { return links_->transport_names(); }
  uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }
  // Tells all ranks where this rank's [buffer, buffer + bytes) is, and learns where theirs are: by rank, as this
  // process can load and store them; null where it cannot. Collective.
  Result<std::vector<std::byte*>> locate(void* buffer, size_t bytes);
  // What a group asks for that can be refused before anything runs: InvalidUsage for unmatched transfers to itself.
  Status check_group(const std::vector<Request>& requests) const;
  struct Usage {
    std::vector<uint64_t> bytes_sent_to;  // by peer
    uint64_t memory_bytes = 0;
  };
  // These take a turn, also after an error: not for callbacks of a stream that this communicator's calls are queued on.
  Usage usage();
  // is_v: the v-form, whose parts have request.count elements on average.
  Result<std::string> explain(const Request& request, bool is_v);
  // Which ranks made others wait since the start. Collective, an allgather in the order of calls; site: who asks.
  Result<WaitReport> report_waits(CallSite site);
  // The same from what the ranks of this host say. Local, any thread, waits for nothing; also after an error.
  WaitReport report_waits_of_host() const;

 private:
  // A rank's part in a split, as all ranks hear it.
  struct Color;

  Communicator(const Membership& membership, CommConfig config, Topology topology);
  static Result<std::unique_ptr<Communicator>> start(Agreement agreement, CommConfig config, const Communicator* parent,
                                                     Rendezvous& rendezvous, Deadline deadline);
  template <typename Fn>
  Result<std::unique_ptr<Communicator>> make_part(Ticket ticket, Fn fn);
  Result<std::vector<Color>> gather_colors(const Color& mine);
  Result<UniqueId> agree_on_id(int nranks, const std::optional<UniqueId>& mine);
  Status check_links(const std::vector<Rank>& ranks) const;
  GroupRendezvous meet(const std::vector<Rank>& ranks);
  static Result<std::unique_ptr<Communicator>> made_from(std::vector<Rank> origins,
                                                         Result<std::unique_ptr<Communicator>> made);
  Result<std::unique_ptr<Communicator>> start_part(std::vector<Rank> ranks, uint64_t nonce, const CommConfig& config);
  Status look_for_deaths(const Status& of_start) const;
  Status swap(Rank to, ConstBytes sent, Rank from, Bytes received, Deadline deadline);

  WaitLimit within_ms(int64_t time_ms) const;
  template <typename Fn>
  Status in_turn_or_after_failure(Ticket ticket, Fn fn);
  Result<std::unique_ptr<Communicator>> start_survivors(const std::vector<Rank>& excluded, const CommConfig& config);
  Result<std::unique_ptr<Communicator>> meet_survivors(const std::vector<Rank>& ranks, const std::vector<Rank>& lost,
                                                       uint64_t arguments, const CommConfig& config);

  template <typename Fn>
  Status in_turn(Turns::Ticket place, Fn fn);
  Status run_at(Turns::Ticket place, const Request& request);
  bool wait_for_turn(Turns::Ticket& place) { return place.is_first || wait_in_line(place); }
  bool wait_in_line(Turns::Ticket& place);
  Status leave(Turns::Ticket place);
  void lose(Turns::Ticket place) noexcept;
  void report(const Status& cause) noexcept;
  Status run_in_turn(const Request& asked);
  Status run_as(const Envelope& envelope, const Request& asked);
  Status run_small(const Envelope& envelope, const Request& asked);
  Status run_program(const Envelope& envelope, const Request& asked, const ProgramKey& key);
  Status run_bound(const BoundProgram& program, const ProgramCall& call);
  bool is_prepared(const Request& request);
  bool are_parts_unlike(const PreparedCall& call) { return call.is_v && host_->take_unlike_parts(); }
  PreparedCall& prepare(const Request& request);
  Reducer reducer_of(const Request& request) const;
  uint64_t rounding_seed() const;
  PreparedCall prepared(const Request& request);
  Result<const BoundProgram*> program_of(PreparedCall& call, bool in_place);
  Status run_prepared_program(PreparedCall& call, const SmallBuffers& buffers, int64_t timeout_ms);
  Status run_prepared(PreparedCall& call, const std::byte* input, std::byte* output, int64_t timeout_ms, CallSite site);
  void note_way(const BoundProgram& program) noexcept;
  bool meets_at_end(const Request& request) const;
  Status meet_at_end(const Envelope& envelope, const Request& asked);
  bool runs_v_form_in_memory(Collective collective);
  Status run_v_form(const Envelope& envelope, const Request& asked);
  Status run_units_in_memory(Envelope envelope, const Request& asked);
  Status exchange_in_memory(const Envelope& envelope, const Request& asked, bool has_met);
  Status exchange_after_all(PreparedCall call, const std::byte* input, std::byte* output, int64_t timeout_ms);
  void note_unlike_parts();
  Result<bool> agree_on_shares(const Envelope& envelope, const Request& asked);
  Result<std::vector<uint64_t>> gather_counts(const Envelope& envelope, const Request& asked, bool with_received);
  Status run_units(const Envelope& envelope, const Request& asked, bool same_places);
  Status gather_packed(const Envelope& envelope, const Request& asked, const UnitLayout& units);
  Status exchange(const Envelope& envelope, const Request& asked);
  Status exchange_routed(const Envelope& envelope, const Request& asked);
  size_t count_fused(std::span<const Request> calls);
  bool have_equal_sums(std::span<const Request> calls, size_t elements);
  bool are_independent(std::span<const Request> calls) const;
  Status run_neighbours(std::span<const Request> calls);
  std::optional<Status> run_fused(std::span<const Request> calls);
  Result<std::unique_ptr<std::byte[]>> room_for(const Envelope& envelope, size_t bytes);
  bool is_finalized() const { return is_finalized_.load(std::memory_order_relaxed); }
  Status refuse_finalized() const;
  LearnedWays ways_to_save() const noexcept;
  void save(const LearnedWays& found) const noexcept;
  bool saves_ways() const;
  void log_start();
  std::vector<RankWaits> known_waits() const;
  void log_waits() const noexcept;
  void depart(const LearnedWays& found);
  Status imitate_hosts(const Communicator* parent);
  const Topology& machine() const { return machine_ ? *machine_ : topology_; }
  Status open_host(const WaitPolicy& policy);
  Status open_programs();
  int64_t limit_of_small_calls(Collective collective);
  Status open_messages(const WaitPolicy& policy);
  Status open_recorder(uint64_t parent);
  void wake_waiters();
  std::string host_ways(const Request& request, bool is_v, const ProgramKey& key);
  Status refuse(const Envelope& envelope, const Status& reason);
  Status run_transfers(const Request* first, size_t count);
  Status run_direct(const Request* requests, size_t count);
  std::vector<std::shared_ptr<Message>> post_forwarded(const Request* requests, size_t count, Status& refused);
  bool is_forwarded(const Request& request) const;
  void await_departures();
  const std::byte* multiply_input(const Request& request);
  ProgramKey key_of(const Request& request) const;
  bool is_in_place(const Request& request) const;
  Request gathering(const void* mine, size_t bytes, void* all) const;
  Envelope begin_call(const Request& request);
  uint64_t begin_call(CallDescriptor& call);
  void note_equal(ConstBytes data);
  void witness_result(const Request& request);
  size_t input_elements(const Request& request) const;
  std::string describe_call(const Envelope& envelope) const override;
  Status finish(std::string_view operation, Status status);
  Status finish(const Envelope& envelope, Status status);

  Membership membership_;
  std::vector<Rank> origins_;
  CommConfig config_;
  Topology topology_;
  std::optional<Topology> machine_;  // where topology_ imitates hosts that are not there: those that are
  std::string plans_;                // contents of the plan file; empty: none
  LearnedWays known_ways_;           // from the tuning file; before host_, which asks it
  // What prices say of ways, by kind of call and by whether its buffers are mapped; slow to compute. Likewise.
  static constexpr size_t kMostExpected = 2048;
  std::array<std::map<CallChoices::Kind, ExpectedWays>, 2> expected_ways_;
  // Over the ranks of this host; null if this one is alone there, or they do not use shared memory. Before links_,
  // whose destructor ends the thread that may be waking it.
  std::unique_ptr<ShmCollectives> host_;
  std::shared_ptr<Messages> messages_;    // null: none. Also owned by handles of messages; before links_ likewise
  Turns turns_;                           // likewise
  std::optional<CallRecorder> recorder_;  // with CCOM_RECORD; before links_, which record to it
  std::unique_ptr<CommSetup> links_;
  std::optional<Engine> engine_;
  std::optional<ProgramRunner> runner_;
  std::shared_ptr<SharedChoices> shared_choices_;  // with the communicators that this one is a part of
  std::shared_ptr<ProgramChoices> choices_;        // of them, those for this one's topology
  std::optional<ProgramCache> programs_;
  std::optional<TransferPlans> transfers_;
  SmallCalls small_calls_;
  PreparedCalls prepared_;
  bool are_parts_alike_ = true;  // of alltoallv so far: of a rank with equal ones, those of all
  bool all_linked_ = true;       // every rank with every other one
  std::atomic<int64_t> timeout_ms_;
  std::atomic<bool> is_finalized_{false};
  bool lingers_ = false;                           // counted in lingering.h
  std::atomic<bool> has_reported_{false};          // log_waits()
  std::atomic<uint64_t> sequence_{0};              // collective calls
  uint64_t history_ = 0;                           // of them and of `results_`, see numbered()
  uint64_t results_ = 0;                           // CallDescriptor::results of the next call
  std::vector<uint64_t> sent_to_, received_from_;  // calls of SendReceive, by peer
  std::vector<std::byte> multiplied_;              // inputs of a premultiplied sum
  std::vector<std::byte> packed_;                  // buffers of calls of a group that run as one
  Mutex consensus_mutex_;                          // rounds of agreement
  mutable Mutex failed_mutex_;
  FailedCall failed_ CCOM_GUARDED_BY(failed_mutex_);
};

// Whatever is thrown in a turn ends the communicator, not the order of turns: buffers may be posted.
template <typename Fn>
Status Communicator::in_turn(Turns::Ticket place, Fn fn) {
  Status status;
  try {
    status = fn();
  } catch (const std::bad_alloc&) {
    status = engine_->fail(error(Code::OutOfMemory, "rank %d ran out of memory", membership_.rank));
  } catch (const std::exception& exception) {
    status = engine_->fail(error(Code::InternalError, "rank %d: %s", membership_.rank, exception.what()));
  }
  turns_.pass(place);
  return status;
}

}  // namespace ccom
