// SPDX-License-Identifier: Apache-2.0
//
// What an application tells about itself, for errors and tools that say where ranks are.
#include "api/handles.h"
#include "observe/locator.h"

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomSetCallSite(const char* text) {
  set_call_site(text == nullptr ? std::string_view() : std::string_view(text));
  return ccomSuccess;
}

ccomResult_t ccomCommWitness(const void* data, size_t bytes, ccomComm_t comm) {
  return guarded("ccomCommWitness", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (data == nullptr && bytes > 0) return error(Code::InvalidArgument, "data is NULL");
    Communicator& communicator = *comm->communicator;
    return communicator.witness(communicator.take_ticket(), {static_cast<const std::byte*>(data), bytes});
  });
}

ccomResult_t ccomSetLocator(ccomLocatorFn fn, void* user) {
  return guarded("ccomSetLocator", [&]() -> Status {
    set_locator(fn, user);
    return {};
  });
}

ccomResult_t ccomCommReport(ccomComm_t comm, int flags, char* text, size_t* length) {
  const CallSite site = CCOM_CALL_SITE;
  return guarded("ccomCommReport", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    if (length == nullptr) return error(Code::InvalidArgument, "length is NULL");
    if ((flags & ~(ccomReportJson | ccomReportHost)) != 0)
      return error(Code::InvalidArgument, "flags are %#x; known are ccomReportJson and ccomReportHost", flags);
    if (group_is_open()) return error(Code::InvalidUsage, "a report cannot be made in a group");
    const bool is_of_host = (flags & ccomReportHost) != 0;
    Communicator& communicator = *comm->communicator;
    CCOM_TRY_ASSIGN(const WaitReport report, is_of_host ? Result<WaitReport>(communicator.report_waits_of_host())
                                                        : communicator.report_waits(site));
    return copy_out((flags & ccomReportJson) != 0 ? json_of(report) : text_of(report), text, length);
  });
}
