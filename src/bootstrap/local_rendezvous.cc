// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/local_rendezvous.h"

#include <condition_variable>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "bootstrap/gathering.h"
#include "bootstrap/start_wait.h"

namespace ccom {
namespace {

class Hub;

class LocalRendezvous final : public Rendezvous {
 public:
  LocalRendezvous(std::shared_ptr<Hub> hub, Caller caller) : hub_(std::move(hub)), caller_(std::move(caller)) {}
  ~LocalRendezvous() override;
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override;

 private:
  const std::shared_ptr<Hub> hub_;
  const Caller caller_;
  uint64_t round_ = 0;
};

class Hub final : public LocalHub, public std::enable_shared_from_this<Hub> {
 public:
  Result<std::unique_ptr<Rendezvous>> join(int nranks, Rank rank) override {
    const Lock lock(mutex_);
    const Caller caller{
        .rank = rank, .nranks = nranks, .token = ++joined_, .who = "thread " + std::to_string(joined_) + " to join"};
    const Status status = gathering_.join(caller);
    changed_.notify_all();  // a failure ends every wait
    CCOM_TRY(Status(status));
    return std::unique_ptr<Rendezvous>(std::make_unique<LocalRendezvous>(shared_from_this(), caller));
  }

  Result<std::vector<std::string>> gather(const Caller& caller, uint64_t round, std::string_view phase,
                                          std::string mine, Deadline deadline) {
    Lock lock(mutex_);
    const auto started = Clock::now();
    const Status status = gathering_.contribute(caller, round, phase, std::move(mine));
    changed_.notify_all();
    CCOM_TRY(Status(status));
    const auto is_settled = [&]() CCOM_REQUIRES(mutex_) {
      return gathering_.result(round) != nullptr || !gathering_.failure().is_ok();
    };
    if (is_settled()) {
      wait_.reset();
    } else if (!wait_) {
      wait_.emplace(warn_ms_);
    }
    while (wait_ && !lock.wait_until(changed_, deadline.earlier(wait_->next()).when(), is_settled)) {
      if (deadline.passed()) break;
      if (wait_->is_due())
        log(LogLevel::Warn, "the start has waited %.0f s for %s", wait_->seconds(),
            gathering_.describe_missing().c_str());
    }
    if (!is_settled()) {
      gathering_.time_out(caller.rank, std::chrono::duration<double>(Clock::now() - started).count());
      changed_.notify_all();
    }
    const Gathering::Parts parts = gathering_.result(round);
    if (parts == nullptr) return gathering_.failure();
    lock.unlock();
    return *parts;
  }

  bool has_failed() const {
    const Lock lock(mutex_);
    return !gathering_.failure().is_ok();
  }

  void leave(const Caller& caller) {
    const Lock lock(mutex_);
    gathering_.leave(caller);
    changed_.notify_all();
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  Gathering gathering_ CCOM_GUARDED_BY(mutex_);
  uint64_t joined_ CCOM_GUARDED_BY(mutex_) = 0;
  const int64_t warn_ms_ = start_warning_ms();
  std::optional<StartWait> wait_ CCOM_GUARDED_BY(mutex_);  // of the current round
};

LocalRendezvous::~LocalRendezvous() { hub_->leave(caller_); }

Result<std::vector<std::string>> LocalRendezvous::all_gather(std::string_view phase, std::string mine,
                                                             Deadline deadline) {
  CCOM_TRY_ASSIGN(auto parts, hub_->gather(caller_, round_, phase, std::move(mine), deadline));
  ++round_;
  return parts;
}

bool LocalRendezvous::has_failed() { return hub_->has_failed(); }

}  // namespace

std::shared_ptr<LocalHub> LocalHub::create() { return std::make_shared<Hub>(); }

}  // namespace ccom
