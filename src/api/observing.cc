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
