// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/requests.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "doors/mpi/errors.h"
#include "doors/mpi/progress.h"

namespace ccom::mpi {
namespace {

constexpr int kMostTag = 32767;  // that every MPI has; 0 is that of the receive which never comes (progress.h)

// The program may free its type before the call is made.
void keep_type(std::optional<Move>& move) {
  if (move && !move->elements.is_plain) mpi().Type_dup(move->elements.type, &move->elements.type);
}
void free_type(std::optional<Move>& move) {
  if (move && !move->elements.is_plain) mpi().Type_free(&move->elements.type);
}

}  // namespace

Request::Request() : tag_(Requests::get().take_tag()) {
  Handle made = 0;
  if (tag_ != 0 && mpi().Recv_init(nullptr, 0, handles().byte, 0, tag_, Process::get().self, &made) == kSuccess)
    carrier_ = mpi().plain(made);
}

// MPICH 4.0 loses a receive that is freed before its message has come.
Request::~Request() {
  if (error_ != 0) Requests::get().count_active(-1);
  if (carrier_ != 0 && !is_running_) {
    mpi().Wait(&carrier_, mpi().numbers.status_ignore);
    mpi().Request_free(&carrier_);
  }
  free_type(steps_.pack);
  free_type(steps_.unpack);
  if (tag_ != 0) Requests::get().give_back_tag(tag_);
}

void Request::keep(const Call& call, const Steps& steps) {
  kind_ = call.kind();
  bytes_ = call.bytes();
  steps_ = steps;
  keep_type(steps_.pack);
  keep_type(steps_.unpack);
}

void Request::start() {
  Process::get().statistics.count(kind_, Form::Persistent, Fate::Taken, bytes_);
  steps_.pack_for(Process::get().self);
  is_running_ = true;
  Requests::get().count_active(1);
  const ccomResult_t result = steps_.call(channel->comm, channel->stream);
  if (result != ccomSuccess) finish(result);
}

bool Request::advance() {
  if (!is_running_) return true;
  const ccomResult_t result = ccom_library().StreamQuery(channel->stream);
  if (result == ccomInProgress) return false;
  finish(result == ccomSuccess ? result : ccom_library().StreamSynchronize(channel->stream, -1));
  return true;
}

void Request::complete() {
  while (is_running_) {
    int has_run = 0;
    ccom_library().StreamRunNext(channel->stream, &has_run);
    if (advance()) return;
    make_progress();
    std::this_thread::yield();
  }
}

void Request::finish(ccomResult_t result) {
  is_running_ = false;
  if (result == ccomSuccess) {
    steps_.unpack_for(Process::get().self);
    Requests::get().count_active(-1);
  } else {
    why_ = ccom_library().GetLastError(channel->comm);
    error_ = code_of(result, why_, channel->error_code);
  }
  mpi().Send(nullptr, 0, handles().byte, 0, tag_, Process::get().self);
}

int Request::report() {
  const int code = std::exchange(error_, 0);
  if (code == 0) return kSuccess;
  Requests::get().count_active(-1);
  const std::string name = name_of(kind_, Form::Persistent);
  const Communicator* const of = channel->of;
  if (of == nullptr) return raise(name.c_str(), mpi().self, 0, 1, code, why_.c_str());
  return raise(name.c_str(), of->handle, of->rank, of->size, code, why_.c_str());
}

struct Requests::Table {
  std::mutex mutex;
  std::unordered_map<Handle, std::unique_ptr<Request>> by_carrier;
  std::vector<std::unique_ptr<Request>> abandoned;  // freed by the program while they were under way
  std::mutex tags_mutex;
  std::vector<int> tags;  // given back
  int next_tag = 1;
};

Requests& Requests::get() {
  static Requests* const requests = new Requests;
  return *requests;
}

Requests::Requests() : table_(new Table) {}

void Requests::add(std::unique_ptr<Request> request) {
  const std::lock_guard lock(table_->mutex);
  const Handle carrier = request->carrier();
  table_->by_carrier[carrier] = std::move(request);
  known_.fetch_add(1, std::memory_order_release);
}

Request* Requests::find(Handle carrier) {
  if (known_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(table_->mutex);
  const auto found = table_->by_carrier.find(mpi().plain(carrier));
  return found == table_->by_carrier.end() ? nullptr : found->second.get();
}

void Requests::forget(Handle carrier) {
  {
    const std::lock_guard lock(table_->mutex);
    const auto found = table_->by_carrier.find(carrier);
    table_->abandoned.push_back(std::move(found->second));
    table_->by_carrier.erase(found);
    known_.fetch_sub(1, std::memory_order_release);
  }
  clean_up();
}

// Those that the program has freed, and that are over now.
void Requests::clean_up() {
  std::vector<std::unique_ptr<Request>> over;
  const std::lock_guard lock(table_->mutex);
  const auto first = std::stable_partition(table_->abandoned.begin(), table_->abandoned.end(),
                                           [](const auto& request) { return !request->advance(); });
  std::move(first, table_->abandoned.end(), std::back_inserter(over));
  table_->abandoned.erase(first, table_->abandoned.end());
}

void Requests::end() {
  const InCall in_call;
  for (const auto& request : table_->abandoned) request->complete();
  table_->abandoned.clear();
  table_->by_carrier.clear();
  known_ = active_ = 0;
}

int Requests::take_tag() {
  const std::lock_guard lock(table_->tags_mutex);
  if (table_->tags.empty()) return table_->next_tag > kMostTag ? 0 : table_->next_tag++;
  const int tag = table_->tags.back();
  table_->tags.pop_back();
  return tag;
}

void Requests::give_back_tag(int tag) {
  const std::lock_guard lock(table_->tags_mutex);
  table_->tags.push_back(tag);
}

bool Later::is_ready(Call& call) {
  Requests::get().clean_up();
  made_ = std::make_unique<Request>();
  Fate why_not = Fate::NotStarted;
  made_->channel = open_channel(call.of(), made_->has_carrier(), why_not);
  return made_->channel != nullptr || call.refuse(why_not);
}

int Later::make(Call& call, const Steps& steps) {
  if (request_ == nullptr) return call.forbid("there is no place for the request");
  made_->keep(call, steps);
  HandleArray(request_).set(0, made_->carrier());
  Requests::get().add(std::move(made_));
  return kSuccess;
}

}  // namespace ccom::mpi
