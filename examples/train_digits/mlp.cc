// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/mlp.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ccom::digits {
namespace {

constexpr size_t kHiddenBias = kHidden * kPixels;
constexpr size_t kOutput = kHiddenBias + kHidden;
constexpr size_t kOutputBias = kOutput + kClasses * kHidden;

struct Activations {
  std::array<float, kHidden> hidden{};
  std::array<float, kClasses> scores{};
};

Activations forward(std::span<const float> parameters, const Picture& picture) {
  Activations result;
  for (size_t unit = 0; unit < kHidden; ++unit) {
    float sum = parameters[kHiddenBias + unit];
    for (size_t i = 0; i < kPixels; ++i) sum += parameters[unit * kPixels + i] * picture.pixels[i];
    result.hidden[unit] = std::max(sum, 0.0f);
  }
  for (size_t digit = 0; digit < kClasses; ++digit) {
    float sum = parameters[kOutputBias + digit];
    for (size_t i = 0; i < kHidden; ++i) sum += parameters[kOutput + digit * kHidden + i] * result.hidden[i];
    result.scores[digit] = sum;
  }
  return result;
}

// Scores become probabilities.
std::array<double, kClasses> softmax(const std::array<float, kClasses>& scores) {
  const double highest = *std::ranges::max_element(scores);
  std::array<double, kClasses> result{};
  double sum = 0;
  for (size_t i = 0; i < kClasses; ++i) sum += result[i] = std::exp(scores[i] - highest);
  for (double& value : result) value /= sum;
  return result;
}

}  // namespace

std::vector<float> random_parameters(uint64_t seed) {
  std::vector<float> parameters(kParameters, 0.0f);
  const auto fill_layer = [&](size_t begin, size_t inputs, size_t outputs) {
    const double limit = std::sqrt(6.0 / static_cast<double>(inputs + outputs));  // Glorot & Bengio 2010.
    for (size_t i = 0; i < inputs * outputs; ++i) {
      const double unit = std::ldexp(static_cast<double>(next_random(seed) >> 11), -53);
      parameters[begin + i] = static_cast<float>(limit * (2 * unit - 1));
    }
  };
  fill_layer(0, kPixels, kHidden);
  fill_layer(kOutput, kHidden, kClasses);
  return parameters;
}

double add_gradients(std::span<const float> parameters, const Picture& picture, float scale,
                     std::span<float> gradients) {
  const Activations forward_pass = forward(parameters, picture);
  const std::array<double, kClasses> probabilities = softmax(forward_pass.scores);
  std::array<float, kHidden> hidden_error{};
  for (size_t digit = 0; digit < kClasses; ++digit) {
    const double target = digit == picture.digit ? 1 : 0;
    const float error = scale * static_cast<float>(probabilities[digit] - target);
    gradients[kOutputBias + digit] += error;
    for (size_t i = 0; i < kHidden; ++i) {
      gradients[kOutput + digit * kHidden + i] += error * forward_pass.hidden[i];
      hidden_error[i] += error * parameters[kOutput + digit * kHidden + i];
    }
  }
  for (size_t unit = 0; unit < kHidden; ++unit) {
    if (forward_pass.hidden[unit] <= 0) continue;
    gradients[kHiddenBias + unit] += hidden_error[unit];
    for (size_t i = 0; i < kPixels; ++i) gradients[unit * kPixels + i] += hidden_error[unit] * picture.pixels[i];
  }
  return -std::log(std::max(probabilities[picture.digit], 1e-300));
}

size_t classify(std::span<const float> parameters, const Picture& picture) {
  const Activations result = forward(parameters, picture);
  return static_cast<size_t>(std::ranges::max_element(result.scores) - result.scores.begin());
}

void step(const Descent& descent, std::span<const float> gradients, std::span<float> velocity,
          std::span<float> parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = descent.momentum * velocity[i] + gradients[i];
    parameters[i] -= descent.rate * velocity[i];
  }
}

}  // namespace ccom::digits
