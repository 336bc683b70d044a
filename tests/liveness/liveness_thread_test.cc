// SPDX-License-Identifier: Apache-2.0
//
// What the liveness thread polls, and when.
#include "liveness/liveness_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace ccom {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;

// Due in an hour, or when it is given work.
class Task final : public LivenessTask {
 public:
  int64_t poll(int64_t now_ns) override {
    polls.fetch_add(1);
    work.store(0);
    return now_ns + kHourNs;
  }
  bool has_work() const override {
    looks.fetch_add(1);
    return work.load() != 0;
  }
  void run_out_of_memory() noexcept override {}
  const std::atomic<uint32_t>* awaited_word() const override { return &work; }

  std::atomic<uint32_t> work{0};
  std::atomic<int> polls{0};
  mutable std::atomic<int> looks{0};
};

class LivenessThreads : public testing::TestWithParam<int> {
 protected:
  LivenessThreads() : thread_(*LivenessThread::of_this_process()) {
    for (int i = 0; i < GetParam(); ++i) tasks_.push_back(std::make_unique<Task>());
    run([this] {
      for (const auto& task : tasks_) thread_->add(task.get());
    });
  }
  ~LivenessThreads() override {
    run([this] {
      for (const auto& task : tasks_) thread_->remove(task.get());
    });
  }
  void run(const std::function<void()>& work) { thread_->run(work); }
  // Ends when a task has been polled once more, at most five seconds later.
  bool is_polled(const Task& task, int polls, const std::function<void()>& meanwhile) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (task.polls.load() == polls) {
      if (std::chrono::steady_clock::now() > until) return false;
      meanwhile();
    }
    return true;
  }

  std::shared_ptr<LivenessThread> thread_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

TEST_P(LivenessThreads, PollATaskThatComes) {
  for (const auto& task : tasks_) EXPECT_TRUE(is_polled(*task, 0, [] {}));
}

TEST_P(LivenessThreads, PollATaskWhoseWordChangesWhileOthersComeAndGo) {
  Task& task = *tasks_.back();
  ASSERT_TRUE(is_polled(task, 0, [] {}));
  const int polls = task.polls.load();
  task.work.store(1);
  EXPECT_TRUE(is_polled(task, polls, [this] { run([] {}); }));
}

TEST_P(LivenessThreads, PollATaskThatIsWoken) {
  Task& task = *tasks_.back();
  ASSERT_TRUE(is_polled(task, 0, [] {}));
  const int polls = task.polls.load();
  task.work.store(1);
  thread_->wake(&task);
  EXPECT_TRUE(is_polled(task, polls, [] {}));
}

TEST_P(LivenessThreads, DoNotLookAtEveryTaskForEachThatComes) {
  constexpr int kWorks = 2000;
  Task& task = *tasks_.front();
  ASSERT_TRUE(is_polled(task, 0, [] {}));
  const int looks = task.looks.load();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kWorks; ++i) run([] {});
  const auto slices = (std::chrono::steady_clock::now() - begin) / std::chrono::milliseconds(5);
  EXPECT_LE(task.looks.load() - looks, slices + 2);
}

TEST_P(LivenessThreads, AskEachOfThem) {
  for (const auto& task : tasks_) ASSERT_TRUE(is_polled(*task, 0, [] {}));
  for (const auto& task : tasks_) task->work.store(1);
  for (const auto& task : tasks_) ASSERT_TRUE(is_polled(*task, 1, [] {}));
}

// Within and beyond the words for which one call of the kernel can wait, and the tasks that are asked at once.
INSTANTIATE_TEST_SUITE_P(Tasks, LivenessThreads, testing::Values(1, 100, 300, 1000));

}  // namespace
}  // namespace ccom
