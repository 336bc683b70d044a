// SPDX-License-Identifier: Apache-2.0
//
// Records the last operations of a process group, to analyse hangs: what was issued, with which shapes, and its state.
// Names are those of torch's flight recorder, whose tools read the dump.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ccom_torch {

// Thread-safe. Keeps TORCH_FR_BUFFER_SIZE operations, 2000 by default.
class FlightRecorder {
 public:
  static constexpr size_t kSizes = 12;
  // Shapes of several tensors: each preceded by its number of dimensions. Truncated if too long.
  struct Shapes {
    std::array<int64_t, kSizes> numbers{};
    std::array<int8_t, 4> dims{};
    std::array<at::ScalarType, 4> types{};
    uint8_t tensors = 0;
  };
  enum class State : uint8_t { Scheduled, Started, Completed, Failed };
  struct Entry {
    uint64_t record = 0;  // counts from 1; 0: unused
    uint64_t collective_sequence = 0, message_sequence = 0;
    const char* title = "";
    Shapes inputs, outputs;
    int64_t created_ns = 0, started_ns = 0, completed_ns = 0, timeout_ms = 0;
    State state = State::Scheduled;
    bool is_message = false;
    int peer = -1;  // of a message; -1: any, or a collective
  };
  using Ticket = uint64_t;

  FlightRecorder();
  Ticket collective(const char* title, uint64_t sequence, const std::vector<at::Tensor>& inputs,
                    const std::vector<at::Tensor>& outputs, int64_t timeout_ms);
  // sequence: of the preceding collective.
  Ticket message(const char* title, uint64_t sequence, int peer, const std::vector<at::Tensor>& inputs,
                 const std::vector<at::Tensor>& outputs, int64_t timeout_ms);
  void started(Ticket ticket);
  void ended(Ticket ticket, bool succeeded);
  std::vector<Entry> entries() const;  // oldest first

 private:
  Ticket add(Entry entry);
  Entry* find(Ticket ticket);

  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  uint64_t records_ = 0, messages_ = 0;
};

}  // namespace ccom_torch
