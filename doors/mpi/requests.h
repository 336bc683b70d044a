// SPDX-License-Identifier: Apache-2.0
//
// Requests of persistent calls that ccom takes.
//
// The program's MPI_Request is a real one of the MPI below, its carrier: a persistent receive of an empty message from
// this rank itself, with a tag of its own on a communicator of this library's. MPI_Start starts it and gives the call
// to a stream of ccom's; when that is over, this rank sends the message. So the MPI below says at any time what is true
// of the request, whatever function asks, also in arrays with its own requests: all that is left to do here is to find
// out, before it is asked, which calls are over.
//
// Nothing runs in MPI_Start: ccom's thread makes the call, or the one that waits for it. That one lets the MPI below
// make progress meanwhile. Only threads that are in a call of MPI's call MPI.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "doors/mpi/channels.h"
#include "doors/mpi/steps.h"

namespace ccom::mpi {

class Request {
 public:
  Request();  // with a carrier, if that can be made
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool has_carrier() const { return carrier_ != 0; }
  // Keeps what the call is.
  void keep(const Call& call, const Steps& steps);

  // Behind MPI's start of the carrier.
  void start();
  // Whether it is over. Does not wait.
  bool advance();
  // Waits, and makes the call in this thread if no other one has begun.
  void complete();
  // Of a call that the program hears to be over: MPI's code, given to the error handler; or success.
  int report();

  Handle carrier() const { return carrier_; }
  std::shared_ptr<Channel> channel;
  Room given, got;

 private:
  void finish(ccomResult_t result);

  Handle carrier_ = 0;
  int tag_ = 0;
  Kind kind_ = Kind::Barrier;
  uint64_t bytes_ = 0;
  Steps steps_{.kind = Kind::Barrier};
  bool is_running_ = false;
  int error_ = 0;  // of a call that is over, not reported yet
  std::string why_;
};

// Of the process.
class Requests {
 public:
  static Requests& get();

  // Whether none is under way, or has failed and is not reported: then MPI alone knows the answer to any question.
  bool are_quiet() const { return active_.load(std::memory_order_acquire) == 0; }
  void count_active(int more) { active_.fetch_add(more, std::memory_order_acq_rel); }

  void add(std::unique_ptr<Request> request);
  Request* find(Handle carrier);  // null: it is not ccom's
  // Frees one, with its carrier. A call that is under way goes on, and its carrier lives as long.
  void forget(Handle carrier);
  void clean_up();
  // In MPI_Finalize.
  void end();

  int take_tag();
  void give_back_tag(int tag);

 private:
  Requests();
  struct Table;
  Table* const table_;
  std::atomic<int> active_ = 0, known_ = 0;
};

// A call that is made when it is started.
class Later {
 public:
  static constexpr Form kForm = Form::Persistent;
  explicit Later(Handle* request) : request_(request) {}
  // Collective: has what the call runs on.
  bool is_ready(Call& call);
  Room& given() { return made_->given; }
  Room& got() { return made_->got; }
  int make(Call& call, const Steps& steps);

 private:
  Handle* const request_;
  std::unique_ptr<Request> made_;
};

}  // namespace ccom::mpi
