// SPDX-License-Identifier: Apache-2.0
//
// A Reducer with a user's operator: order of operands, several outputs, outputs in the place of inputs, any alignment,
// pieces, and failures. The operator composes maps x -> a x + b modulo 2^32, which does not commute; arithmetic is
// exact, so grouping makes no difference.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace ccom {
namespace {

struct Affine {
  uint32_t a, b;
  friend bool operator==(const Affine&, const Affine&) = default;
};
Affine compose(const Affine& f, const Affine& g) { return {f.a * g.a, f.a * g.b + f.b}; }

// What the operator has seen.
struct Seen {
  size_t calls = 0, elements = 0;
  bool is_aligned = true;
};

UserOperator::Apply composing(Seen& seen) {
  return [&seen](const std::byte* in, std::byte* inout, size_t count, DataType type) -> Status {
    EXPECT_EQ(type, DataType::Uint64);
    ++seen.calls;
    seen.elements += count;
    seen.is_aligned &= reinterpret_cast<uintptr_t>(in) % 8 == 0 && reinterpret_cast<uintptr_t>(inout) % 8 == 0;
    for (size_t i = 0; i < count; ++i) {
      Affine left, right;
      std::memcpy(&left, in + i * sizeof left, sizeof left);
      std::memcpy(&right, inout + i * sizeof right, sizeof right);
      right = compose(left, right);
      std::memcpy(inout + i * sizeof right, &right, sizeof right);
    }
    return {};
  };
}

using Vector = std::vector<Affine>;

std::vector<Vector> random_vectors(size_t vectors, size_t count) {
  std::mt19937 random(7);
  std::vector<Vector> all(vectors, Vector(count));
  for (Vector& vector : all) {
    for (Affine& element : vector) element = {static_cast<uint32_t>(random()) | 1, static_cast<uint32_t>(random())};
  }
  return all;
}

Vector expected_of(const std::vector<Vector>& inputs) {
  Vector result = inputs[0];
  for (size_t k = 1; k < inputs.size(); ++k) {
    for (size_t i = 0; i < result.size(); ++i) result[i] = compose(result[i], inputs[k][i]);
  }
  return result;
}

// Vectors in memory that begins `shift` bytes after a multiple of 16.
class Shifted {
 public:
  Shifted(const Vector& vector, size_t shift) : memory_(vector.size() * sizeof(Affine) + 32), count_(vector.size()) {
    begin_ = memory_.data() + (-reinterpret_cast<uintptr_t>(memory_.data()) % 16) + shift;
    if (count_ > 0) std::memcpy(begin_, vector.data(), count_ * sizeof(Affine));
  }
  Shifted(Shifted&&) = default;
  std::byte* data() { return begin_; }
  Vector vector() const {
    Vector all(count_);
    if (count_ > 0) std::memcpy(all.data(), begin_, count_ * sizeof(Affine));
    return all;
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* begin_;
  size_t count_;
};

Reducer reducer_of(UserOperator& user) { return Reducer({.type = DataType::Uint64, .op = user.op(), .user = &user}); }

TEST(UserOperator, CombinesAnyNumberOfInputsInListOrder) {
  for (const size_t count : {0, 1, 7, 1023, 1024, 1025, 5000}) {
    for (const size_t inputs : {1, 2, 3, 9}) {
      for (const size_t shift : {0, 3}) {
        const std::vector<Vector> vectors = random_vectors(inputs, count);
        std::vector<Shifted> memory;
        std::vector<const std::byte*> sources;
        for (const Vector& vector : vectors) sources.push_back(memory.emplace_back(vector, shift).data());
        Shifted first(Vector(count), shift), second(Vector(count), 0);
        Seen seen;
        UserOperator user(composing(seen), false, 1);
        const std::vector<std::byte*> outputs{first.data(), second.data()};
        reducer_of(user)(sources, outputs, count, 1);
        EXPECT_EQ(first.vector(), expected_of(vectors)) << count << " elements of " << inputs;
        EXPECT_EQ(second.vector(), first.vector());
        EXPECT_EQ(seen.elements, count * (inputs - 1)) << "one call for each two operands, none for one input";
        EXPECT_TRUE(seen.is_aligned) << "shift " << shift;
        EXPECT_FALSE(user.has_failed());
      }
    }
  }
}

TEST(UserOperator, ReadsAllInputsBeforeItWritesInTheirPlace) {
  constexpr size_t kInputs = 4, kCount = 3000;
  const std::vector<Vector> vectors = random_vectors(kInputs, kCount);
  const Vector expected = expected_of(vectors);
  for (size_t some = 1; some < 1 << kInputs; ++some) {  // which inputs are outputs as well
    std::vector<Shifted> memory;
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> outputs;
    for (size_t k = 0; k < kInputs; ++k) {
      sources.push_back(memory.emplace_back(vectors[k], 0).data());
      if ((some >> k & 1) != 0) outputs.push_back(memory.back().data());
    }
    Seen seen;
    UserOperator user(composing(seen), false, 1);
    reducer_of(user)(sources, outputs, kCount);
    for (size_t k = 0; k < kInputs; ++k) {
      EXPECT_EQ(memory[k].vector(), (some >> k & 1) != 0 ? expected : vectors[k]) << "input " << k << ", case " << some;
    }
  }
}

TEST(UserOperator, IsNotCalledAfterAFailureAndRemembersTheFirst) {
  int calls = 0;
  UserOperator user(
      [&calls](const std::byte*, std::byte*, size_t, DataType) -> Status {
        ++calls;
        return calls < 2 ? Status() : error(Code::OperatorError, "failure %d", calls);
      },
      true, 1);
  const std::vector<Vector> vectors = random_vectors(2, 4000);
  Vector output(4000);
  const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(vectors[0].data()),
                                     reinterpret_cast<const std::byte*>(vectors[1].data())};
  auto* const target = reinterpret_cast<std::byte*>(output.data());
  const Reducer reducer = reducer_of(user);
  reducer(inputs, {&target, 1}, 4000);
  reducer(inputs, {&target, 1}, 4000);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(user.has_failed());
  EXPECT_EQ(user.failure().message(), "failure 2");
}

TEST(UserOperator, TakesEveryTypeAsItIs) {
  for (const DataType type : {DataType::Int8, DataType::Bool, DataType::Float8e4m3, DataType::Bfloat16, DataType::Int32,
                              DataType::Float64, DataType::Complex128}) {
    DataType seen{};
    UserOperator user(
        [&](const std::byte* in, std::byte* inout, size_t count, DataType given) -> Status {
          seen = given;
          for (size_t i = 0; i < count * size_of(given); ++i) inout[i] ^= in[i];
          return {};
        },
        true, 1);
    const std::vector<std::byte> a(5 * size_of(type), std::byte{0xf0}), b(a.size(), std::byte{0x3c});
    std::vector<std::byte> output(a.size());
    const std::byte* const inputs[] = {a.data(), b.data()};
    reduce({.type = type, .op = user.op(), .rounding = Rounding::Stochastic, .user = &user}, inputs, output.data(), 5);
    EXPECT_EQ(seen, type);
    EXPECT_EQ(output, std::vector<std::byte>(a.size(), std::byte{0xcc}));
  }
}

}  // namespace
}  // namespace ccom
