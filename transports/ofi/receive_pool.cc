// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/receive_pool.h"

#include <rdma/fi_errno.h>

#include "transports/ofi/channel.h"
#include "transports/ofi/errors.h"

namespace ccom::ofi {

Status ReceivePool::fill(size_t count, size_t buffer_bytes) {
  CCOM_ASSERT(operations_.empty());
  CCOM_TRY_ASSIGN(const Region region, endpoint_.allocate(count * buffer_bytes));
  memory_bytes_ = region.bytes.size();
  operations_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    ReceiveOperation& operation = operations_[i];
    operation.data = region.bytes.data() + i * buffer_bytes;
    operation.size_bytes = buffer_bytes;
    operation.descriptor = region.descriptor;
    CCOM_TRY(release(operation));
  }
  return Status::ok();
}

Status ReceivePool::release(ReceiveOperation& operation) {
  const int rc = endpoint_.post_receive(operation);
  if (rc == -FI_EAGAIN) {
    refused_.push_back(&operation);
    return Status::ok();
  }
  if (rc != 0) return fabric_error(-rc, "post a receive buffer");
  if (OfiChannel* channel = std::exchange(operation.charged, nullptr); channel != nullptr) channel->return_credit();
  return Status::ok();
}

Status ReceivePool::retry() {
  if (refused_.empty()) return Status::ok();
  std::vector<ReceiveOperation*> again = std::exchange(refused_, {});
  for (ReceiveOperation* operation : again) CCOM_TRY(release(*operation));
  return Status::ok();
}

}  // namespace ccom::ofi
