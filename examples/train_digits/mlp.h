// SPDX-License-Identifier: Apache-2.0
//
// A perceptron with one hidden layer: 64 pixels, 32 rectified units, 10 classes, softmax with cross entropy.
//
// All parameters are in one flat vector, and so are their gradients: one collective reduces them.
#pragma once

#include <span>
#include <vector>

#include "examples/train_digits/digits.h"

namespace ccom::digits {

inline constexpr size_t kHidden = 32;
// Weights of the hidden layer (a row per unit), its biases, weights of the output layer, its biases.
inline constexpr size_t kParameters = kHidden * kPixels + kHidden + kClasses * kHidden + kClasses;

std::vector<float> random_parameters(uint64_t seed);

// Adds scale * d(loss)/d(parameters) for one picture to `gradients`. Returns the loss.
double add_gradients(std::span<const float> parameters, const Picture& picture, float scale,
                     std::span<float> gradients);

size_t classify(std::span<const float> parameters, const Picture& picture);

// Stochastic gradient descent with momentum: velocity = momentum * velocity + gradients; parameters -= rate * velocity.
struct Descent {
  float rate = 0.1f;
  float momentum = 0.9f;
};
void step(const Descent& descent, std::span<const float> gradients, std::span<float> velocity,
          std::span<float> parameters);

}  // namespace ccom::digits
