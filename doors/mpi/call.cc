// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/call.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace ccom::mpi {
namespace {

// 0: this MPI gives no such code.
int code_with(int error_class, const std::string& text) {
  int code = 0;
  std::array<char, 8192> told{};
  int length = 0;
  const bool is_made = mpi().Add_error_code(error_class, &code) == kSuccess &&
                       mpi().Add_error_string(code, text.c_str()) == kSuccess &&
                       mpi().Error_string(code, told.data(), &length) == kSuccess;
  return is_made && text == told.data() ? code : 0;
}

// A code of that class with the text as its string. MPICH 4.0 has none but in classes that are new; then it is that.
int error_code(int error_class, const std::string& text) {
  if (const int code = code_with(error_class, text)) return code;
  int new_class = 0;
  if (mpi().Add_error_class(&new_class) != kSuccess) return error_class;
  const int code = code_with(new_class, text);
  return code == 0 ? error_class : code;
}

}  // namespace

Call::Call(Kind kind, Handle comm) : kind_(kind), handle_(mpi().plain(comm)) {
  Process& process = Process::get();
  if (process.mode == Mode::Off || handle_ == 0 || handle_ == mpi().comm_null) return;
  of_ = process.find(handle_);
}

bool Call::refuse(Fate why) {
  Process::get().statistics.count(kind_, why, 0);
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
  Process::get().statistics.count(kind_, Fate::Taken, bytes);
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
  Process::get().statistics.count(kind_, Fate::Taken, own_bytes);
  return true;
}

int Call::fail(ccomResult_t result) {
  const std::string text = ccom_library().GetLastError(of_->comm);
  if (result == ccomInvalidArgument || result == ccomInvalidUsage) return raise(mpi().numbers.err_arg, text.c_str());
  // An error of the communicator is final: one code is enough for it.
  if (of_->error_code == 0) {
    const int error_class = result == ccomOutOfMemory     ? mpi().numbers.err_no_mem
                            : result == ccomInternalError ? mpi().numbers.err_intern
                                                          : mpi().numbers.err_other;
    const auto most = static_cast<size_t>(mpi().numbers.max_error_string) - 1;
    of_->error_code = error_code(error_class, text.substr(0, most));
  }
  return raise(of_->error_code, text.c_str());
}

int Call::forbid(const char* text) { return raise(mpi().numbers.err_arg, text); }

// What MPI prints before it aborts is cut, or only the class.
int Call::raise(int code, const char* text) {
  Handle handler = 0;
  mpi().Comm_get_errhandler(handle_, &handler);
  if (mpi().plain(handler) != mpi().errors_return)
    std::fprintf(stderr, "ccom: %s on rank %d of %d: %s\n", name_of(kind_), of_->rank, of_->size, text);
  if (handler != 0) mpi().Errhandler_free(&handler);
  mpi().Comm_call_errhandler(handle_, code);
  return code;
}

}  // namespace ccom::mpi
