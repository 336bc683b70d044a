// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder.h"

#include <chrono>
#include <cstdlib>

namespace ccom_torch {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

size_t ring_size() {
  const char* asked = std::getenv("TORCH_FR_BUFFER_SIZE");
  return asked == nullptr ? 2000 : static_cast<size_t>(std::max(0L, std::strtol(asked, nullptr, 10)));
}

FlightRecorder::Shapes shapes_of(const std::vector<at::Tensor>& tensors) {
  FlightRecorder::Shapes shapes;
  size_t used = 0;
  for (const at::Tensor& tensor : tensors) {
    const size_t dims = static_cast<size_t>(tensor.dim());
    if (shapes.tensors == shapes.dims.size() || used + dims > FlightRecorder::kSizes) break;
    for (const int64_t size : tensor.sizes()) shapes.numbers[used++] = size;
    shapes.dims[shapes.tensors] = static_cast<int8_t>(dims);
    shapes.types[shapes.tensors++] = tensor.scalar_type();
  }
  return shapes;
}

}  // namespace

FlightRecorder::FlightRecorder() : ring_(ring_size()) {}

FlightRecorder::Ticket FlightRecorder::add(Entry entry) {
  if (ring_.empty()) return 0;
  entry.created_ns = now_ns();
  std::lock_guard lock(mutex_);
  entry.record = ++records_;
  entry.message_sequence = entry.is_message ? ++messages_ : messages_;
  ring_[entry.record % ring_.size()] = entry;
  return entry.record;
}

FlightRecorder::Ticket FlightRecorder::collective(const char* title, uint64_t sequence,
                                                  const std::vector<at::Tensor>& inputs,
                                                  const std::vector<at::Tensor>& outputs, int64_t timeout_ms) {
  Entry entry;
  entry.title = title;
  entry.collective_sequence = sequence;
  entry.inputs = shapes_of(inputs);
  entry.outputs = shapes_of(outputs);
  entry.timeout_ms = timeout_ms;
  return add(entry);
}

FlightRecorder::Ticket FlightRecorder::message(const char* title, uint64_t sequence, int peer,
                                               const std::vector<at::Tensor>& inputs,
                                               const std::vector<at::Tensor>& outputs, int64_t timeout_ms) {
  Entry entry;
  entry.title = title;
  entry.collective_sequence = sequence;
  entry.inputs = shapes_of(inputs);
  entry.outputs = shapes_of(outputs);
  entry.timeout_ms = timeout_ms;
  entry.is_message = true;
  entry.peer = peer;
  return add(entry);
}

FlightRecorder::Entry* FlightRecorder::find(Ticket ticket) {
  if (ring_.empty()) return nullptr;
  Entry& entry = ring_[ticket % ring_.size()];
  return entry.record == ticket && ticket != 0 ? &entry : nullptr;
}

void FlightRecorder::started(Ticket ticket) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = find(ticket)) {
    entry->state = State::Started;
    entry->started_ns = now_ns();
  }
}

void FlightRecorder::ended(Ticket ticket, bool succeeded) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = find(ticket)) {
    entry->state = succeeded ? State::Completed : State::Failed;
    entry->completed_ns = now_ns();
  }
}

std::vector<FlightRecorder::Entry> FlightRecorder::entries() const {
  std::lock_guard lock(mutex_);
  std::vector<Entry> found;
  for (uint64_t record = records_ > ring_.size() ? records_ - ring_.size() + 1 : 1; record <= records_; ++record) {
    const Entry& entry = ring_[record % ring_.size()];
    if (entry.record == record) found.push_back(entry);
  }
  return found;
}

}  // namespace ccom_torch
