// SPDX-License-Identifier: Apache-2.0
//
// MPI's functions on requests, in place of the MPI below.
#include "doors/mpi/completion.h"

#include <cstring>

#include "doors/mpi/exported.h"

namespace ccom::mpi {
namespace {

Ours ours_of(int count, const Handle* requests) {
  const HandleArray array(const_cast<Handle*>(requests));
  return Ours(requests == nullptr ? 0 : count, [&](int i) { return array.get(static_cast<size_t>(i)); });
}

// Writes codes into statuses, and what the function on them returns.
class Statuses {
 public:
  // `result`: of MPI's function, which has filled so many.
  Statuses(int result, void* statuses, int filled)
      : result_(result), first_(static_cast<std::byte*>(statuses)), filled_(filled) {}
  void set(int place, int code) {
    if (code == kSuccess) return;
    const Numbers& numbers = mpi().numbers;
    // MPI sets no codes where all is well.
    for (int i = 0; result_ == kSuccess && i < filled_; ++i) write(i, kSuccess);
    result_ = numbers.err_in_status;
    write(place, code);
  }
  int result() const { return result_; }

 private:
  void write(int place, int code) {
    if (first_ == mpi().numbers.status_ignore) return;
    std::memcpy(first_ + static_cast<size_t>(place) * mpi().numbers.status_bytes + mpi().numbers.error_in_status, &code,
                sizeof code);
  }

  int result_;
  std::byte* const first_;
  const int filled_;
};

int report_all(const Ours& ours, int result, int count, void* statuses) {
  Statuses codes(result, statuses, count);
  for (int i = 0; i < count; ++i) codes.set(i, ours.report(i));
  return codes.result();
}

int report_named(const Ours& ours, int result, int outcount, const int* indices, void* statuses) {
  Statuses codes(result, statuses, named(outcount));
  for (int i = 0; i < named(outcount); ++i) codes.set(i, ours.report(indices[i]));
  return codes.result();
}

int either(int result, int code) { return code == kSuccess ? result : code; }

}  // namespace
}  // namespace ccom::mpi

using namespace ccom::mpi;  // NOLINT(google-build-using-namespace): the functions below are MPI's

int MPI_Start(Handle* request) {
  Request* const ours = request == nullptr ? nullptr : Requests::get().find(HandleArray(request).get(0));
  const int result = mpi().Start(request);
  if (ours != nullptr && result == kSuccess) ours->start();
  return result;
}

int MPI_Startall(int count, Handle* requests) {
  const int result = mpi().Startall(count, requests);
  const HandleArray array(requests);
  for (int i = 0; i < count && result == kSuccess; ++i)
    if (Request* const ours = Requests::get().find(array.get(static_cast<size_t>(i)))) ours->start();
  return result;
}

int MPI_Wait(Handle* request, void* status) {
  if (Requests::get().are_quiet()) return mpi().Wait(request, status);
  const Ours ours = ours_of(1, request);
  ours.complete();
  const int result = mpi().Wait(request, status);
  return either(result, ours.report(0));
}

int MPI_Test(Handle* request, int* flag, void* status) {
  if (Requests::get().are_quiet()) return mpi().Test(request, flag, status);
  const Ours ours = ours_of(1, request);
  ours.advance();
  const int result = mpi().Test(request, flag, status);
  return result != kSuccess || *flag == 0 ? result : ours.report(0);
}

int MPI_Waitall(int count, Handle* requests, void* statuses) {
  const Ours ours = ours_of(count, requests);
  ours.complete();
  return report_all(ours, mpi().Waitall(count, requests, statuses), count, statuses);
}

int MPI_Testall(int count, Handle* requests, int* flag, void* statuses) {
  const Ours ours = ours_of(count, requests);
  ours.advance();
  const int result = mpi().Testall(count, requests, flag, statuses);
  return ours.empty() || *flag == 0 ? result : report_all(ours, result, count, statuses);
}

int MPI_Waitany(int count, Handle* requests, int* index, void* status) {
  const Ours ours = ours_of(count, requests);
  if (ours.empty()) return mpi().Waitany(count, requests, index, status);
  int result = kSuccess, flag = 0;
  ours.wait_until([&] {
    result = mpi().Testany(count, requests, index, &flag, status);
    return result != kSuccess || flag != 0;
  });
  return either(result, ours.report(*index));
}

int MPI_Testany(int count, Handle* requests, int* index, int* flag, void* status) {
  const Ours ours = ours_of(count, requests);
  ours.advance();
  const int result = mpi().Testany(count, requests, index, flag, status);
  return ours.empty() || *flag == 0 ? result : either(result, ours.report(*index));
}

int MPI_Waitsome(int count, Handle* requests, int* outcount, int* indices, void* statuses) {
  const Ours ours = ours_of(count, requests);
  if (ours.empty()) return mpi().Waitsome(count, requests, outcount, indices, statuses);
  int result = kSuccess;
  ours.wait_until([&] {
    result = mpi().Testsome(count, requests, outcount, indices, statuses);
    return result != kSuccess || *outcount != 0;
  });
  return report_named(ours, result, *outcount, indices, statuses);
}

int MPI_Testsome(int count, Handle* requests, int* outcount, int* indices, void* statuses) {
  const Ours ours = ours_of(count, requests);
  ours.advance();
  const int result = mpi().Testsome(count, requests, outcount, indices, statuses);
  return ours.empty() ? result : report_named(ours, result, *outcount, indices, statuses);
}

int MPI_Request_free(Handle* request) {
  if (request == nullptr) return mpi().Request_free(request);
  HandleArray handle(request);
  if (Requests::get().find(handle.get(0)) == nullptr) return mpi().Request_free(request);
  Requests::get().forget(mpi().plain(handle.get(0)));
  handle.set(0, mpi().request_null);
  return kSuccess;
}

int MPI_Request_get_status(Handle request, int* flag, void* status) {
  const Ours ours(1, [&](int) { return request; });
  ours.advance();
  return mpi().Request_get_status(request, flag, status);
}

int MPI_Request_get_status_all(int count, const Handle* requests, int* flag, void* statuses) {
  ours_of(count, requests).advance();
  return mpi().Request_get_status_all(count, requests, flag, statuses);
}

int MPI_Request_get_status_any(int count, const Handle* requests, int* index, int* flag, void* status) {
  ours_of(count, requests).advance();
  return mpi().Request_get_status_any(count, requests, index, flag, status);
}

int MPI_Request_get_status_some(int count, const Handle* requests, int* outcount, int* indices, void* statuses) {
  ours_of(count, requests).advance();
  return mpi().Request_get_status_some(count, requests, outcount, indices, statuses);
}
