// SPDX-License-Identifier: Apache-2.0
#include "mapped_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <ccom/ccom.h>
#include <pthread.h>

#include <atomic>
#include <bit>
#include <map>
#include <mutex>

namespace ccom_torch {
namespace {

// Block sizes: eight steps between powers of two, so that freed blocks fit later requests with little waste.
size_t block_size(size_t bytes) {
  const size_t step = std::max(page_bytes(), std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

// Thread-safe. Never destroyed: tensors may outlive static destruction. Its mutex is a leaf: nobody takes another one
// while holding it, and libccom is called without it. Around a fork the forking thread holds libccom's mutexes and this
// one in whatever order their handlers were registered, so a thread that held one and waited for another could meet it.
class Blocks {
 public:
  static Blocks& get() {
    static Blocks* const instance = make();
    return *instance;
  }

  // Null if there is no such memory (left), or in a forked child, which shares nothing with the ranks.
  void* allocate(size_t bytes) {
    const size_t size = block_size(bytes);
    void* data = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (is_child_) return nullptr;
      if (const auto found = kept_.find(size); found != kept_.end()) {
        data = found->second;
        kept_.erase(found);
        use_.kept -= size;
      }
    }
    if (data == nullptr && ccomMemAlloc(&data, size) != ccomSuccess) return nullptr;
    std::lock_guard lock(mutex_);
    sizes_[data] = size;
    use_.in_use += size;
    return data;
  }

  // False if it was not allocated here.
  bool free(void* data) {
    {
      std::lock_guard lock(mutex_);
      const auto found = sizes_.find(data);
      if (found == sizes_.end()) return false;
      const size_t size = found->second;
      sizes_.erase(found);
      use_.in_use -= size;
      if (is_child_) return true;  // the pages go with the process
      if (use_.kept + size <= keep_bytes_) {
        kept_.emplace(size, data);
        use_.kept += size;
        return true;
      }
    }
    ccomMemFree(data);
    return true;
  }

  bool contains(const void* data, size_t bytes) {
    std::lock_guard lock(mutex_);
    auto after = sizes_.upper_bound(const_cast<void*>(data));
    if (after == sizes_.begin()) return false;
    const auto [begin, size] = *--after;
    return static_cast<const char*>(data) + bytes <= static_cast<const char*>(begin) + size;
  }

  void keep_at_most(size_t bytes) {
    std::lock_guard lock(mutex_);
    keep_bytes_ = bytes;
  }

  MappedMemoryUse use() {
    std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  static Blocks* make() {
    auto* blocks = new Blocks;
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] {
                     get().is_child_ = true;
                     get().mutex_.unlock();
                   });
    return blocks;
  }

  std::mutex mutex_;
  std::map<void*, size_t> sizes_;      // of blocks in use
  std::multimap<size_t, void*> kept_;  // free ones
  MappedMemoryUse use_;
  size_t keep_bytes_ = size_t{1} << 30;
  bool is_child_ = false;
};

void free_any(void* data) {
  if (Blocks::get().free(data)) {
    c10::profiledCPUMemoryReporter().Delete(data);
  } else {
    c10::GetDefaultCPUAllocator()->raw_deleter()(data);
  }
}

// Large tensors from Blocks, all others from torch's allocator.
class MappedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes >= min_bytes_.load(std::memory_order_relaxed) ? Blocks::get().allocate(bytes) : nullptr;
    if (data == nullptr) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &free_any, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  void set_min_bytes(size_t bytes) { min_bytes_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<size_t> min_bytes_{SIZE_MAX};
};

}  // namespace

void enable_mapped_tensors(size_t min_bytes, size_t keep_bytes) {
  static auto* const allocator = new MappedAllocator;
  allocator->set_min_bytes(std::max<size_t>(min_bytes, 4096));
  Blocks::get().keep_at_most(keep_bytes);
  if (c10::GetCPUAllocator() != allocator) c10::SetCPUAllocator(allocator, 1);
}

at::Tensor mapped_tensor(int64_t size, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(size) * options.dtype().itemsize();
  void* data = Blocks::get().allocate(std::max<size_t>(bytes, 1));
  if (data == nullptr) return at::empty({size}, options);
  return at::from_blob(
      data, {size}, [](void* block) { Blocks::get().free(block); }, options);
}

bool is_mapped(const void* data, size_t bytes) { return Blocks::get().contains(data, bytes); }

MappedMemoryUse mapped_memory_use() { return Blocks::get().use(); }

}  // namespace ccom_torch
