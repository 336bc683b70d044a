// SPDX-License-Identifier: Apache-2.0
//
// Groups: a thread-local list of validated requests, issued together at the outermost end.
//
// Requests of one communicator and stream keep their order and run as one turn. Communicators run concurrently: the
// first in the thread that runs the group (or the stream), every further one in its own thread, so that one thread can
// drive many ranks.
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "base/per_thread.h"
#include "base/thread.h"

namespace ccom {
namespace {

// The requests of one communicator on one stream.
struct Batch {
  ccomComm_t comm;
  ccomStream_t stream;
  std::vector<Request> requests;
  std::vector<std::shared_ptr<const void>> keep;
  Communicator::Ticket ticket;
};

struct Group {
  std::vector<Batch> batches;
  std::vector<std::function<Work()>> inits;
};

thread_local constinit int group_depth = 0;
PerThread<Group> groups;
Group& group() {
  Group* const mine = groups.get();
  if (mine == nullptr) throw std::bad_alloc();
  return *mine;
}

// For calls on streams: a communicator's ticket and a position in a stream's queue must be taken atomically, otherwise
// two threads could take them in opposite orders. Process-wide because a group may contain several communicators.
Mutex& posting() {
  static constinit PerProcess<Mutex> mutex;
  return mutex.get();
}

Status contained(Work& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    return error(Code::InternalError, "%s", exception.what());
  }
}

// Batches of one stream run concurrently too: they may be ranks that wait for one another.
Status post(std::vector<Batch> batches) {
  std::map<ccomStream_t, std::vector<Work>> by_stream;
  for (const Batch& batch : batches) CCOM_TRY(batch.comm->communicator->check_group(batch.requests));
  {
    const Lock lock(posting());
    for (Batch& batch : batches) batch.ticket = batch.comm->communicator->take_ticket();
    for (Batch& batch : batches) {
      by_stream[batch.stream].push_back(
          [communicator = batch.comm->communicator.get(), ticket = std::move(batch.ticket),
           requests = std::move(batch.requests),
           keep = std::move(batch.keep)]() mutable { return communicator->run(std::move(ticket), requests); });
    }
    for (auto& [stream, runs] : by_stream) {
      if (stream == nullptr) continue;
      stream->stream.enqueue([batch = std::move(runs)]() mutable { return run_in_threads(std::move(batch)); });
    }
  }
  return run_in_threads(std::move(by_stream[nullptr]));
}

Status start_ranks(const std::vector<std::function<Work()>>& inits) {
  std::vector<Work> starts;
  starts.reserve(inits.size());
  for (const auto& prepare : inits) starts.push_back(prepare());
  return run_in_threads(std::move(starts));
}

}  // namespace

Status run_in_threads(std::vector<Work> runs) {
  Status refusal;
  std::vector<Status> results(runs.size());
  {
    const auto run = [&results, &runs](size_t i) {
      results[i] = contained(runs[i]);
      runs[i].reset();  // what it has joined it leaves now, not when the others are done
    };
    std::vector<std::jthread> threads(runs.empty() ? 0 : runs.size() - 1);
    for (size_t i = 1; i < runs.size(); ++i) {
      if (const int refused = start_thread(threads[i - 1], "ccom-group", [&run, i] { run(i); }); refused != 0) {
        if (refusal.is_ok()) refusal = system_error(refused, "start a thread for a communicator of a group");
        runs[i].reset();  // the ranks that wait for it hear of it
      }
    }
    if (!runs.empty()) run(0);
  }
  CCOM_TRY(refusal);
  for (const Status& status : results) CCOM_TRY(status);
  return {};
}

constinit std::atomic<int> internal::open_groups{0};
bool internal::group_of_thread_is_open() { return group_depth > 0; }

Status check_no_calls_in_group(ccomComm_t comm, ccomStream_t stream) {
  if (!group_is_open()) return {};
  for (const Batch& batch : group().batches) {
    if ((comm == nullptr || batch.comm != comm) && (stream == nullptr || batch.stream != stream)) continue;
    return error(Code::InvalidUsage, "the %s has calls in a group that is open",
                 comm != nullptr ? "communicator" : "stream")
        .with_cure("call ccomGroupEnd first");
  }
  return {};
}

void add_to_group(ccomComm_t comm, ccomStream_t stream, const Request& request, std::shared_ptr<const void> keep) {
  for (Batch& batch : group().batches) {
    if (batch.comm != comm || batch.stream != stream) continue;
    batch.requests.push_back(request);
    batch.keep.push_back(std::move(keep));
    return;
  }
  group().batches.push_back({comm, stream, {request}, {std::move(keep)}, {}});
}

void add_init_to_group(std::function<Work()> prepare) { group().inits.push_back(std::move(prepare)); }

Status submit(ccomComm_t comm, ccomStream_t stream, const Request& request, std::shared_ptr<const void> keep) {
  if (group_is_open()) {
    add_to_group(comm, stream, request, std::move(keep));
    return {};
  }
  Communicator* communicator = comm->communicator.get();
  if (stream == nullptr) return communicator->run(request);
  if (stream->generation != fork_generation()) {
    return error(ErrorKey::Forked, "the stream was created before fork() and belongs to the parent process");
  }
  const Lock lock(posting());
  stream->stream.enqueue([communicator, ticket = communicator->take_ticket(), request,
                          keep = std::move(keep)]() mutable { return communicator->run(std::move(ticket), request); });
  return {};
}

}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomGroupStart(void) {
  if (group_depth++ == 0) internal::open_groups.fetch_add(1, std::memory_order_relaxed);
  return ccomSuccess;
}

ccomResult_t ccomGroupEnd(void) {
  return guarded("ccomGroupEnd", [&]() -> Status {
    if (group_depth == 0) return error(ErrorKey::NoOpenGroup, "there is no open group in this thread");
    if (--group_depth > 0) return {};
    internal::open_groups.fetch_sub(1, std::memory_order_relaxed);
    std::vector<Batch> batches = std::exchange(group().batches, {});
    CCOM_TRY(start_ranks(std::exchange(group().inits, {})));
    return post(std::move(batches));
  });
}
