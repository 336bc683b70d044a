// SPDX-License-Identifier: Apache-2.0
//
// Operators that are created: premultiplied sums, and functions of the user's, of which nothing gets out but a Status.
#include <cxxabi.h>

#include <exception>
#include <string>

#include "api/handles.h"
#include "kernels/user_operator.h"

namespace ccom {
namespace {

ccomRedOp_t add_operator(ccomComm_t comm, std::shared_ptr<const CreatedOperator> made)
    CCOM_REQUIRES(comm->operators_mutex) {
  comm->operators.push_back(std::move(made));
  return ccomNumOps + static_cast<int>(comm->operators.size()) - 1;
}

// A function of the user's, on one rank.
struct UserFunction {
  ccomRedOpFn function;
  void* context;
  Rank rank;
  unsigned number;

  Status failed(const std::string& how) const {
    return error(Code::OperatorError, "rank %d: user operator %u %s", rank, number, how.c_str()).with_peers({rank});
  }

  Status operator()(const std::byte* in, std::byte* inout, size_t count, DataType type) const {
    try {
      const ccomResult_t result = function(in, inout, count, static_cast<ccomDataType_t>(type), context);
      if (result == ccomSuccess) return {};
      return failed("returned " + std::to_string(static_cast<int>(result)) + " (" + ccomGetErrorString(result) + ")");
    } catch (const abi::__forced_unwind&) {  // the thread is cancelled
      throw;
    } catch (const std::exception& exception) {
      return failed(std::string("threw an exception: ") + exception.what());
    } catch (...) {
      return failed("threw an exception");
    }
  }
};

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomRedOpCreate(ccomRedOp_t* op, ccomRedOpFn function, void* context, ccomRedOpOrder_t order,
                             ccomComm_t comm) {
  return guarded("ccomRedOpCreate", [&]() -> Status {
    if (op == nullptr || function == nullptr) return error(Code::InvalidArgument, "op or function is NULL");
    if (order != ccomRedOpOrdered && order != ccomRedOpCommutative) {
      return error(Code::InvalidArgument, "order %d is unknown", static_cast<int>(order))
          .with_cure("pass ccomRedOpOrdered or ccomRedOpCommutative");
    }
    CCOM_TRY(check_handle(comm));
    const Rank rank = comm->communicator->rank();
    const Lock lock(comm->operators_mutex);
    const auto number = static_cast<uint16_t>(comm->user_operators + 1);
    auto made = std::make_shared<CreatedOperator>();
    made->user = std::make_unique<UserOperator>(UserFunction{function, context, rank, number},
                                                order == ccomRedOpCommutative, number);
    *op = add_operator(comm, std::move(made));
    comm->user_operators = number;
    return {};
  });
}

ccomResult_t ccomRedOpCreatePreMulSum(ccomRedOp_t* op, void* scalar, ccomDataType_t type,
                                      ccomScalarResidence_t residence, ccomComm_t comm) {
  return guarded("ccomRedOpCreatePreMulSum", [&]() -> Status {
    if (op == nullptr || scalar == nullptr) return error(Code::InvalidArgument, "op or scalar is NULL");
    CCOM_TRY(check_handle(comm));
    CCOM_TRY(check_size(1, type, 1));
    const auto data_type = static_cast<DataType>(type);
    const size_t bytes = size_of(data_type);
    if (data_type == DataType::Bool)
      return error(Code::InvalidArgument, "type %d cannot be multiplied", static_cast<int>(type));
    if (residence != ccomScalarDevice && residence != ccomScalarHostImmediate) {
      return error(Code::InvalidArgument, "residence %d is unknown", static_cast<int>(residence));
    }
    auto made = std::make_shared<CreatedOperator>();
    made->type = data_type;
    const auto* value = static_cast<const std::byte*>(scalar);
    if (residence == ccomScalarDevice) {
      made->device = value;
    } else {
      made->scalar.assign(value, value + bytes);
    }
    const Lock lock(comm->operators_mutex);
    *op = add_operator(comm, std::move(made));
    return {};
  });
}

ccomResult_t ccomRedOpDestroy(ccomRedOp_t op, ccomComm_t comm) {
  return guarded("ccomRedOpDestroy", [&]() -> Status {
    CCOM_TRY(check_handle(comm));
    const Lock lock(comm->operators_mutex);
    const auto index = static_cast<size_t>(op - ccomNumOps);
    if (op < ccomNumOps || index >= comm->operators.size() || comm->operators[index] == nullptr) {
      return error(Code::InvalidArgument, "op %d is not an operator of this communicator, or was already destroyed",
                   op);
    }
    comm->operators[index].reset();
    return {};
  });
}
