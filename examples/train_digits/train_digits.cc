// SPDX-License-Identifier: Apache-2.0
//
// Data-parallel training: N ranks train one small network on handwritten digits, as a large one is trained on many
// machines.
//
// Every rank has the whole model and takes rows r, r+N, r+2N, ... of each global batch. Per step one allreduce sums the
// gradients, which each rank has divided by the size of the global batch. As results are bitwise equal on all ranks,
// their models stay equal without being compared, and N ranks with B/N pictures each learn what one rank learns with B,
// up to rounding.
#include <ccom/ccom.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command_line/command_line.h"
#include "bench/launch/processes.h"
#include "bench/launch/session.h"
#include "examples/train_digits/digits.h"
#include "examples/train_digits/mlp.h"

namespace ccom::digits {
namespace {

using launch::ExitCode;
using launch::Outcome;
using launch::outcome_of;
using launch::Place;

struct Options {
  int ranks = 1;
  bool threads = false;
  int epochs = 30;
  size_t batch = 64;
  Descent descent;
  std::string data = std::filesystem::read_symlink("/proc/self/exe").parent_path() / CCOM_DIGITS_CSV;
  std::string curve;
  uint64_t seed = 1;
};

constexpr std::chrono::milliseconds kTimeout{600'000};

class Training {
 public:
  Training(const Options& options, Place place, ccomComm_t comm, const Digits& digits)
      : options_(options), place_(place), comm_(comm), digits_(digits) {}

  // Only rank 0 has initial parameters. `mean_losses` gets one value per epoch.
  Outcome run(std::vector<double>* mean_losses) {
    if (place_.rank == 0) parameters_ = random_parameters(options_.seed);
    CCOM_LAUNCH_TRY(
        outcome_of(ccomBroadcast(parameters_.data(), parameters_.data(), kParameters, ccomFloat32, 0, comm_, nullptr),
                   comm_, "broadcast of the first parameters"));
    for (int epoch = 1; epoch <= options_.epochs; ++epoch) {
      double loss = 0;
      CCOM_LAUNCH_TRY(run_epoch(static_cast<uint64_t>(epoch), &loss));
      mean_losses->push_back(loss);
      if (place_.rank == 0) std::printf("epoch %2d  loss %.6f\n", epoch, loss);
    }
    return {};
  }

  // Share of test pictures classified correctly; each rank evaluates its part of them.
  Outcome accuracy(double* result) {
    int64_t right = 0;
    for (size_t i = first(); i < digits_.test.size(); i += stride()) {
      if (classify(parameters_, digits_.test[i]) == digits_.test[i].digit) ++right;
    }
    CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&right, &right, 1, ccomInt64, ccomSum, comm_, nullptr), comm_,
                               "allreduce of the test"));
    *result = static_cast<double>(right) / static_cast<double>(digits_.test.size());
    return {};
  }

 private:
  size_t first() const { return static_cast<size_t>(place_.rank); }
  size_t stride() const { return static_cast<size_t>(place_.ranks); }

  Outcome run_epoch(uint64_t epoch, double* mean_loss) {
    const std::vector<size_t> order = shuffled(digits_.training.size(), (options_.seed << 32) + epoch);
    double loss = 0;
    for (size_t begin = 0; begin < order.size(); begin += options_.batch) {
      const size_t size = std::min(options_.batch, order.size() - begin);
      CCOM_LAUNCH_TRY(run_step({order.data() + begin, size}, &loss));
    }
    CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&loss, &loss, 1, ccomFloat64, ccomSum, comm_, nullptr), comm_,
                               "allreduce of the loss"));
    *mean_loss = loss / static_cast<double>(order.size());
    return {};
  }

  Outcome run_step(std::span<const size_t> batch, double* loss) {
    std::ranges::fill(gradients_, 0.0f);
    const float scale = 1.0f / static_cast<float>(batch.size());
    for (size_t i = first(); i < batch.size(); i += stride()) {
      *loss += add_gradients(parameters_, digits_.training[batch[i]], scale, gradients_);
    }
    CCOM_LAUNCH_TRY(outcome_of(
        ccomAllReduce(gradients_.data(), gradients_.data(), kParameters, ccomFloat32, ccomSum, comm_, nullptr), comm_,
        "allreduce of the gradients"));
    step(options_.descent, gradients_, velocity_, parameters_);
    return {};
  }

  const Options& options_;
  const Place place_;
  const ccomComm_t comm_;
  const Digits& digits_;
  std::vector<float> parameters_ = std::vector<float>(kParameters);
  std::vector<float> gradients_ = std::vector<float>(kParameters);
  std::vector<float> velocity_ = std::vector<float>(kParameters);
};

Outcome write_curve(const std::string& path, const std::vector<double>& losses) {
  std::ofstream file(path);
  file.precision(12);
  file << "epoch,loss\n";
  for (size_t i = 0; i < losses.size(); ++i) file << i + 1 << ',' << losses[i] << '\n';
  file.flush();
  if (!file) return launch::failure(ExitCode::Usage, "--curve %s: %s", path.c_str(), std::strerror(errno));
  return {};
}

Outcome run_rank(const Options& options, Place place, ccomComm_t comm) {
  Digits digits;
  CCOM_LAUNCH_TRY(read_digits(options.data, &digits));
  Training training(options, place, comm, digits);
  std::vector<double> losses;
  CCOM_LAUNCH_TRY(training.run(&losses));
  double accuracy = 0;
  CCOM_LAUNCH_TRY(training.accuracy(&accuracy));
  if (place.rank == 0) {
    std::printf("%d ranks, global batch %zu: test accuracy %.4f\n", place.ranks, options.batch, accuracy);
    if (!options.curve.empty()) CCOM_LAUNCH_TRY(write_curve(options.curve, losses));
  }
  return outcome_of(ccomBarrier(comm, nullptr), comm, "barrier at the end");
}

int exit_with(const Outcome& outcome) {
  if (!outcome.text.empty()) std::fprintf(stderr, "train_digits: %s\n", outcome.text.c_str());
  return static_cast<int>(outcome.code);
}

int start(const Options& options, const std::vector<std::string>& arguments) {
  const launch::RankBody body = [&options](Place place, ccomComm_t comm) { return run_rank(options, place, comm); };
  launch::SessionConfig config;
  config.common.commName = "train_digits";
  if (options.threads) {
    const launch::Watchdog watchdog(kTimeout);
    return exit_with(launch::run_as_threads(options.ranks, config, body));
  }
  std::optional<Place> place;
  if (const Outcome launched = launch::launched_place(&place); !launched.ok()) return exit_with(launched);
  if (!place) return launch::run_processes({.arguments = arguments, .ranks = options.ranks, .timeout = kTimeout});
  const launch::Watchdog watchdog(kTimeout);
  return exit_with(launch::run_as_process(*place, config, body));
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  CommandLine line("train_digits", "Trains a small network on handwritten digits, on one or several ranks.");
  line.option("--np", options.ranks, "Ranks to start on this machine; -np works too. A launcher's number wins")
      .range(1, 1024);
  line.flag("--threads", options.threads, "Ranks are threads of one process");
  line.option("--epochs", options.epochs, "Times through the training pictures").range(1, 100'000);
  line.option("--batch", options.batch, "Pictures per step, over all ranks").range(1, 1'000'000);
  line.option("--lr", options.descent.rate, "Learning rate").positive();
  line.option("--momentum", options.descent.momentum, "Momentum").range(0.0, 1.0);
  line.option("--seed", options.seed, "Of the first parameters and of the order of the pictures");
  line.option("--data", options.data, "The pictures");
  line.option("--curve", options.curve, "Write epoch,loss lines to this file");
  if (const std::optional<int> code = line.exit_code({arguments.begin() + 1, arguments.end()})) return *code;
  return start(options, arguments);
}

}  // namespace
}  // namespace ccom::digits

int main(int argc, char** argv) {
  try {
    return ccom::digits::run({argv, argv + argc});
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "train_digits: %s\n", thrown.what());
    return 3;
  }
}
