// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are reduced again and again, as DDP's buckets are: their memory is put within reach of the other ranks
// in place, so that later calls copy least.
//
// Memory can be mapped by whole pages, and a tensor rarely begins on one. So its first and last page's worth of bytes
// is reduced apart, on all ranks alike; what lies between consists of whole pages of the tensor's own, wherever it
// begins.
#pragma once

#include <c10/core/Storage.h>

#include <map>
#include <mutex>

#include "collectives.h"

namespace ccom_torch {

// Thread-safe. CCOM_TORCH_MAP_BUCKETS=0, on all ranks, switches it off.
class Buckets {
 public:
  Buckets();

  // As ccom_torch::allreduce. Which calls are cut depends on the sequence of calls alone, which all ranks share; which
  // tensors are mapped is each rank's own business. A mapped tensor's memory is kept until a later call finds that
  // nobody else does.
  void allreduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op);
  // Before the communicator is destroyed. The memory is ordinary again.
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
  std::map<size_t, int> sizes_;             // how often each came
  std::map<c10::StorageImpl*, Seen> seen_;  // candidates
  std::map<c10::StorageImpl*, Mapped> mapped_;
  size_t mapped_bytes_ = 0;
};

}  // namespace ccom_torch
