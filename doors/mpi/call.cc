// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/call.h"

#include <string>

#include "doors/mpi/errors.h"

namespace ccom::mpi {
Call::Call(Kind kind, Handle comm, Form form) : kind_(kind), form_(form), handle_(mpi().plain(comm)) {
  Process& process = Process::get();
  if (process.mode == Mode::Off || handle_ == 0 || handle_ == mpi().comm_null) return;
  of_ = process.find(handle_);
}

bool Call::refuse(Fate why) {
  Process::get().statistics.count(kind_, form_, why, 0);
  return false;
}

bool Call::is_possible() {
  if (of_ == nullptr) return refuse(Fate::OutsideWorld);
  return of_->refusal == Fate::Taken || refuse(of_->refusal);
}

// Collective: the first call that is to be taken starts ccom's communicator.
bool Call::is_open() {
  if (of_->comm != nullptr) [[likely]]
    return true;
  if (!of_->is_tried) Process::get().start(*of_);
  return of_->comm != nullptr;
}

Way Call::way_of(Kind as, size_t size_class) {
  if (Process::get().mode == Mode::All) return Way::Ccom;
  Way& way = of_->ways[static_cast<size_t>(as)][size_class];
  if (way == Way::Unknown) [[unlikely]]
    way = measure(*of_, as, size_class);
  return way;
}

bool Call::is_taken(uint64_t bytes, Kind as) {
  if (!is_valid_) return refuse(Fate::Invalid);
  if (bytes == 0 && kind_ != Kind::Barrier) return refuse(Fate::Empty);
  if (!is_open()) return refuse(of_->refusal);
  if (way_of(as, class_of(bytes)) == Way::Mpi) return refuse(Fate::Slower);
  bytes_ = bytes;
  if (form_ == Form::Blocking) Process::get().statistics.count(kind_, form_, Fate::Taken, bytes);
  return true;
}

bool Call::is_taken(uint64_t bytes, Kind as, const Type* type, const Operator* op) {
  if (type == nullptr || !type->reduces) return refuse(Fate::Type);
  if (op == nullptr || (op->families >> static_cast<unsigned>(type->family) & 1U) == 0) return refuse(Fate::Op);
  return is_taken(bytes, as);
}

bool Call::is_taken_unsized(uint64_t own_bytes) {
  if (!is_valid_) return refuse(Fate::Invalid);
  if (!is_open()) return refuse(of_->refusal);
  if (way_of(kind_, 0) == Way::Mpi) return refuse(Fate::Slower);
  Process::get().statistics.count(kind_, form_, Fate::Taken, own_bytes);
  return true;
}

int Call::fail(ccomResult_t result) {
  const std::string text = ccom_library().GetLastError(of_->comm);
  return raise_code(code_of(result, text, of_->error_code), text.c_str());
}

int Call::forbid(const char* text) { return raise_code(mpi().numbers.err_arg, text); }

int Call::raise_code(int code, const char* text) {
  return raise(name_of(kind_, form_).c_str(), handle_, of_->rank, of_->size, code, text);
}

}  // namespace ccom::mpi
