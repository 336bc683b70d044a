// SPDX-License-Identifier: Apache-2.0
//
// A channel: its lines, with one Sender and one Receiver.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "transports/tcp/rails.h"
#include "transports/tcp/receiver.h"
#include "transports/tcp/sender.h"

namespace ccom::tcp {

class TcpChannel;

// State shared by all channels of a transport. Where another thread looks after these too (Transport::care), it is
// guarded by its mutex, as all that belongs to them.
struct Shared {
  Shared(size_t grid, bool has_carer) : is_cared_for(has_carer), pool(grid) {}
  const bool is_cared_for;
  Mutex mutex;
  Status failure;                   // the first error; final
  std::vector<TcpChannel*> active;  // have posted operations
  std::vector<Token> completed;     // completed within post_*, reported by the next progress()
  bool may_progress = false;        // work was posted that can proceed without a network event
  BufferPool pool;
  Readiness readiness;
};

// Takes the mutex only where there is another thread: a transport is polled a hundred times a message.
class SharedLock {
 public:
  explicit SharedLock(Shared& shared) CCOM_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(shared.is_cared_for ? &shared.mutex : nullptr) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~SharedLock() CCOM_NO_THREAD_SAFETY_ANALYSIS {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  Mutex* const mutex_;
};

class TcpChannel final : public Channel {
 public:
  // The number of lines must be known in advance: sender and receiver refer to them.
  struct Shape {
    size_t streams = 1;
    bool crc = true;
    std::chrono::milliseconds rail_limit{0};  // see Rails
  };
  TcpChannel(Route route, const Shape& shape, Shared& shared);
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  void set_line(size_t stream, std::unique_ptr<Line> line) {
    line->establish(shared_.readiness);
    lines_[stream] = std::move(line);
    shared_.may_progress |= ++connected_ == lines_.size();
    if (is_connected()) rails_.begin();
  }
  // Those that are there. Operations wait for all.
  const std::vector<std::unique_ptr<Line>>& lines() const { return lines_; }
  bool is_idle() const { return sender_.is_idle() && receiver_.is_idle(); }
  // See Sender::pump and Receiver::pump.
  Status pump(bool ask_first, Events& events);
  // Before sleeping: arms every line that a posted operation waits for, or sets Shared::may_progress if there is work
  // already. An error if an operation can never complete.
  Status arm_all();
  // Whether nothing but acknowledgements, of which no event tells, completes what is posted next.
  bool awaits_acknowledgements() const { return sender_.awaits_acknowledgements(); }
  // See Rails::check_silence.
  Status check_silence(std::chrono::milliseconds last_limit) {
    return is_connected() ? rails_.check_silence(last_limit) : Status::ok();
  }
  // Something is complete and not acknowledged; its line owes that.
  bool has_flights() const { return sender_.has_flights(); }
  bool awaits_answer() const { return is_connected() && rails_.awaits_answer(); }
  // See Sender::care.
  Status care(std::vector<Token>& completed) { return is_connected() ? sender_.care(completed) : Status::ok(); }
  void deactivate() { is_active_ = false; }
  // Drops all posted operations.
  void clear();
  // After clear(), once per line: sends the end of stream; returns the descriptor and the number of unacknowledged
  // bytes, end of stream included, at which everything reported complete has arrived.
  struct Rest {
    int fd;
    size_t unpromised_bytes;
  };
  Rest end_output(size_t i);
  uint64_t memory_bytes() const;

 private:
  void activate();
  bool is_connected() const { return connected_ == lines_.size(); }

  const Route route_;
  Shared& shared_;
  std::vector<std::unique_ptr<Line>> lines_;  // by stream; null: not connected yet
  size_t connected_ = 0;
  Rails rails_;
  Sender sender_;
  Receiver receiver_;
  bool is_active_ = false;  // listed in shared_.active
};

}  // namespace ccom::tcp
