// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are reduced repeatedly, such as DDP's buckets: their memory is replaced in place by memory that the
// other ranks can map, so that later calls copy least.
//
// Memory is mapped by whole pages, and tensors rarely start on a page boundary. So the first and last page's worth of
// bytes is reduced separately, on all ranks alike; what lies between consists of whole pages of the tensor, wherever it
// starts.
#pragma once

#include <c10/core/Storage.h>

#include <map>
#include <mutex>

#include "collectives.h"

namespace ccom_torch {

// Thread-safe. Disabled by CCOM_TORCH_MAP_BUCKETS=0 on all ranks.
class Buckets {
 public:
  Buckets();

  // As ccom_torch::allreduce. Which calls are split depends only on the sequence of calls, which all ranks share; which
  // tensors are mapped may differ between ranks. A mapped tensor's memory is held until a later call finds no other
  // reference.
  void allreduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op);
  // To be called before the communicator is destroyed. Restores ordinary memory. Another communicator may be used then.
  void release(ccomComm_t comm);

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    int times;
  };
  struct Mapped {
    c10::Storage storage;
    void* handle;
    size_t bytes;
  };

  bool comes_again(const Member& member, size_t bytes);
  void map(ccomComm_t comm, const at::Tensor& tensor);
  bool has_come_often(const c10::Storage& storage);
  void drop_unused(ccomComm_t comm);

  std::mutex mutex_;
  bool enabled_;
  bool asked_ = false;                      // whether all ranks share memory
  std::map<size_t, int> sizes_;             // number of calls per size
  std::map<c10::StorageImpl*, Seen> seen_;  // candidates
  std::map<c10::StorageImpl*, Mapped> mapped_;
  size_t mapped_bytes_ = 0;
};

}  // namespace ccom_torch
