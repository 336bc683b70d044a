// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

namespace ccom_torch {
namespace {

std::optional<Elements> known_elements(at::ScalarType type) {
  switch (type) {
    case at::kBool: return Elements{ccomBool};
    case at::kByte: return Elements{ccomUint8};
    case at::kChar: return Elements{ccomInt8};
    case at::kShort: return Elements{ccomInt16};
    case at::kInt: return Elements{ccomInt32};
    case at::kLong: return Elements{ccomInt64};
    case at::kUInt16: return Elements{ccomUint16};
    case at::kUInt32: return Elements{ccomUint32};
    case at::kUInt64: return Elements{ccomUint64};
    case at::kHalf: return Elements{ccomFloat16};
    case at::kBFloat16: return Elements{ccomBfloat16};
    case at::kFloat: return Elements{ccomFloat32};
    case at::kDouble: return Elements{ccomFloat64};
    case at::kFloat8_e4m3fn: return Elements{ccomFloat8e4m3};
    case at::kFloat8_e5m2: return Elements{ccomFloat8e5m2};
    case at::kComplexFloat: return Elements{ccomComplex64};
    case at::kComplexDouble: return Elements{ccomComplex128};
    case at::kComplexHalf: return Elements{ccomFloat16, 2};  // sums and averages, part by part
    default: return std::nullopt;
  }
}

ccomRedOp_t builtin(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM: return ccomSum;
    case c10d::ReduceOp::AVG: return ccomAvg;
    case c10d::ReduceOp::PRODUCT: return ccomProd;
    case c10d::ReduceOp::MIN: return ccomMin;
    case c10d::ReduceOp::MAX: return ccomMax;
    case c10d::ReduceOp::BAND: return ccomBand;
    case c10d::ReduceOp::BOR: return ccomBor;
    case c10d::ReduceOp::BXOR: return ccomBxor;
    default: raise("ccom: unknown reduce operator " + std::to_string(static_cast<int>(op)));
  }
}

// The factor of a premultiplied sum as one element of `type`.
at::Tensor factor_of(const c10d::ReduceOp& op, at::ScalarType type) {
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(supplement != nullptr, "ccom: a premultiplied sum without a factor");
  if (supplement->tensor_factor.defined()) return supplement->tensor_factor.to(at::kCPU, type).contiguous();
  return at::scalar_tensor(supplement->double_factor, at::TensorOptions().dtype(type));
}

// A group's timeout is what torch says; ccom's variables do not count here.
std::string cure_of(const ccomErrorInfo_t& info) {
  std::string cure = info.cure;
  for (const std::string_view name : {"timeoutMs (CCOM_TIMEOUT_MS)", "initTimeoutMs (CCOM_INIT_TIMEOUT_MS)"}) {
    const size_t found = cure.find(name);
    if (found != std::string::npos)
      cure.replace(found, name.size(), "the group's timeout (init_process_group, new_group)");
  }
  return cure;
}

// ccom's texts start with the function's name.
std::string text_of(ccomResult_t result, const ccomErrorInfo_t& info) {
  std::string text = info.text[0] != '\0' ? info.text : ccomGetErrorString(result);
  if (text.starts_with("ccom")) text.erase(0, std::min(text.size(), text.find(": ") + 2));
  if (info.host[0] != '\0' && text.find(info.host) == std::string::npos) text += " (on " + std::string(info.host) + ")";
  if (info.cure[0] != '\0') text += ". To do: " + cure_of(info);
  if (info.key[0] != '\0') text += " [" + std::string(info.key) + "]";
  // Code that uses torch searches for these words of gloo's.
  if (result == ccomTimeout) text += " [ Timed out waiting for peers ]";
  if (result == ccomRemoteError || result == ccomAborted) text += " [ Connection closed by peer ]";
  return text;
}

// The error details of `result`; none if `info` describes another error.
ccomErrorInfo_t about(ccomResult_t result, const ccomErrorInfo_t& info) {
  if (info.result == result) return info;
  ccomErrorInfo_t nothing = CCOM_ERROR_INFO_INIT;
  nothing.result = result;
  return nothing;
}

}  // namespace

void raise(const std::string& text) { C10_THROW_ERROR(DistBackendError, text); }

Elements arithmetic_elements(at::ScalarType type) {
  if (const std::optional<Elements> known = known_elements(type)) return *known;
  raise(std::string("ccom: tensors of type ") + c10::toString(type) + " can be moved but not reduced");
}

Elements moved_elements(at::ScalarType type) {
  if (const std::optional<Elements> known = known_elements(type)) return *known;
  return {ccomUint8, c10::elementSize(type)};
}

Operator::Operator(const c10d::ReduceOp& op, at::ScalarType type, ccomComm_t comm) {
  TORCH_CHECK(!(type == at::kComplexHalf && op != c10d::ReduceOp::SUM && op != c10d::ReduceOp::AVG),
              "ccom: tensors of type complex32 can only be summed and averaged");
  if (op != c10d::ReduceOp::PREMUL_SUM) {
    op_ = builtin(op.op_);
    return;
  }
  at::Tensor factor = factor_of(op, type);
  check(
      ccomRedOpCreatePreMulSum(&op_, factor.data_ptr(), arithmetic_elements(type).type, ccomScalarHostImmediate, comm),
      comm);
  made_for_ = comm;
}

Operator::~Operator() {
  if (made_for_ != nullptr) ccomRedOpDestroy(op_, made_for_);
}

CallFailed::CallFailed(ccomResult_t result, const ccomErrorInfo_t& info)
    : std::runtime_error(text_of(result, info)), info_(info) {}

void check(ccomResult_t result, ccomComm_t comm) {
  if (result == ccomSuccess) return;
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  // The call's own error first: a rejected argument does not change the communicator.
  if (ccomGetErrorInfo(nullptr, &info) != ccomSuccess || info.result != result) ccomGetErrorInfo(comm, &info);
  throw CallFailed(result, about(result, info));
}

void check_later(ccomResult_t result, ccomComm_t comm) {
  if (result == ccomSuccess) return;
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  ccomGetErrorInfo(comm, &info);
  throw CallFailed(result, about(result, info));
}

}  // namespace ccom_torch
