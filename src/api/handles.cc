// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

namespace ccom {

Status make_handle(ccomComm_t* out, const CommConfig& settings,
                   std::function<Result<std::unique_ptr<Communicator>>(const CommConfig& settings)> make) {
  auto handle = std::make_unique<ccomComm>();
  if (settings.blocking) {
    CCOM_TRY_ASSIGN(handle->communicator, make(settings));
    if (handle->communicator != nullptr) *out = handle.release();
    return {};
  }
  CommConfig own = settings;
  own.interrupted = handle->background.interruption(settings.interrupted);
  handle->is_starting = true;
  CCOM_TRY(handle->background.run([comm = handle.get(), own, make = std::move(make)]() -> Status {
    Result<std::unique_ptr<Communicator>> made = make(own);
    Status status = made ? Status() : made.error();
    if (made) comm->communicator = *std::move(made);
    comm->is_starting = false;
    return status;
  }));
  *out = handle.release();
  return error(Code::InProgress, "the start of the communicator is under way");
}

}  // namespace ccom
