// SPDX-License-Identifier: Apache-2.0
//
// The sum of sparse tensors: every rank gathers all indices and values, and adds them in rank order.
#include "collectives.h"
#include "types.h"

namespace ccom_torch {
namespace {

// [size, 1 + dims]: each rank's number of values, and its shape.
at::Tensor gather_shapes(const Member& member, const at::Tensor& tensor) {
  std::vector<int64_t> mine{tensor._nnz(), tensor.sparse_dim()};
  mine.insert(mine.end(), tensor.sizes().begin(), tensor.sizes().end());
  const at::Tensor shape = at::tensor(mine, at::kLong);
  at::Tensor shapes = at::empty({member.size, shape.numel()}, at::kLong);
  allgather(member, shapes, shape);
  return shapes;
}

// The ranks' parts, which differ in the first dimension: lengths[r] rows each.
Tensors gather_rows(const Member& member, const at::Tensor& rows, const at::Tensor& lengths) {
  std::vector<int64_t> size = rows.sizes().vec();
  Tensors pieces;
  for (int64_t rank = 0; rank < member.size; ++rank) {
    size[0] = lengths[rank].item<int64_t>();
    pieces.push_back(at::empty(size, rows.options()));
  }
  allgather(member, pieces, rows);
  return pieces;
}

}  // namespace

void allreduce_sparse(const Member& member, const at::Tensor& tensor) {
  const at::Tensor mine = tensor.coalesce();
  const at::Tensor shapes = gather_shapes(member, mine);
  const at::Tensor layout = shapes.narrow(1, 1, shapes.size(1) - 1);
  for (int64_t rank = 0; rank < member.size; ++rank) {
    TORCH_CHECK(at::equal(layout[rank], layout[member.rank]), "ccom allreduce: sparse tensors have the shape ",
                layout[member.rank].slice(0, 1), " on rank ", member.rank, " and ", layout[rank].slice(0, 1),
                " on rank ", rank);
  }
  const at::Tensor lengths = shapes.select(1, 0);
  if (lengths.max().item<int64_t>() == 0) return;
  const Tensors indices = gather_rows(member, mine._indices().t().contiguous(), lengths);
  const Tensors values = gather_rows(member, mine._values().contiguous(), lengths);
  const at::Tensor sum =
      at::sparse_coo_tensor(at::cat(indices).t(), at::cat(values), tensor.sizes(), tensor.options()).coalesce();
  tensor.copy_(sum);
}

}  // namespace ccom_torch
