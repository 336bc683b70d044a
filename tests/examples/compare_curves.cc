// SPDX-License-Identifier: Apache-2.0
//
// compare_curves A B LIMIT: 0 if two "epoch,loss" files have the same epochs and losses that differ by at most LIMIT,
// relative to A; else 1, and says where.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<double> losses(const char* path) {
  std::vector<double> values;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // The heading.
  while (std::getline(file, line)) values.push_back(std::atof(line.substr(line.find(',') + 1).c_str()));
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::vector<double> a = losses(argv[1]);
  const std::vector<double> b = losses(argv[2]);
  const double limit = std::atof(argv[3]);
  if (a.empty() || a.size() != b.size()) {
    std::printf("%s has %zu epochs, %s has %zu\n", argv[1], a.size(), argv[2], b.size());
    return 1;
  }
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::abs(a[i]);
    if (!(difference <= limit)) {
      std::printf("epoch %zu: %.9g and %.9g differ by %.3g\n", i + 1, a[i], b[i], difference);
      return 1;
    }
    worst = std::max(worst, difference);
  }
  std::printf("%zu epochs, largest difference %.3g\n", a.size(), worst);
  return 0;
}
