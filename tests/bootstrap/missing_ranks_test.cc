// SPDX-License-Identifier: Apache-2.0
//
// Whoever waits at the start for a rank that does not come says so, long before the start's time is up. Ranks as
// threads: the missing one waits for the line that names it, and then comes.
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/log.h"
#include "bootstrap/local_rendezvous.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/start_wait.h"
#include "bootstrap/url.h"
#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;

class Warnings {
 public:
  Warnings() { set_log_function(&Warnings::take, this); }
  ~Warnings() { set_log_function(nullptr, nullptr); }
  // False if there is none with both texts in time.
  bool wait_for(const std::string& begin, const std::string& end) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, soon().when(), [&] {
      return std::ranges::any_of(lines_, [&](const std::string& line) {
        return line.find(begin) != std::string::npos && line.find(end) != std::string::npos;
      });
    });
  }

 private:
  static void take(LogLevel level, const char* message, void* user) {
    if (level != LogLevel::Warn) return;
    auto* const self = static_cast<Warnings*>(user);
    const std::lock_guard lock(self->mutex_);
    self->lines_.emplace_back(message);
    self->changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class MissingRank : public ::testing::Test {
 protected:
  void gather(Result<std::unique_ptr<Rendezvous>> rendezvous) {
    ASSERT_TRUE(rendezvous) << message_of(rendezvous);
    const auto parts = (*rendezvous)->all_gather("addresses", "x", soon());
    EXPECT_TRUE(parts) << message_of(parts);
  }
  // Ranks 0 and 1; `missing` comes when the other has said that it waits.
  void meet(const std::string& url, Rank missing, const std::string& begin, const std::string& end) {
    run_ranks(2, [&](Rank rank) {
      if (rank == missing) {
        EXPECT_TRUE(warnings_.wait_for(begin, end));
      }
      const auto make = [] { return create_unique_id("lo", {}, soon()); };
      const auto id = unique_id_from_url(url, 2, rank, soon(), make);
      ASSERT_TRUE(id) << message_of(id);
      gather(connect_rendezvous(*id, 2, rank, soon()));
    });
  }

  const ScopedVariable soon_{"CCOM_WARN_MS", "50"};
  Warnings warnings_;
};

TEST_F(MissingRank, IsNamedByTheServer) {
  const TestServer hosted = start_test_server();
  run_ranks(3, [&](Rank rank) {
    if (rank == 2) {
      EXPECT_TRUE(warnings_.wait_for("the start has waited ", " s for rank 2 of 3 (never joined)"));
    }
    gather(connect_rendezvous(hosted.id, 3, rank, soon()));
  });
}

TEST_F(MissingRank, IsNamedAmongThreads) {
  const auto hub = LocalHub::create();
  run_ranks(3, [&](Rank rank) {
    if (rank == 1) {
      EXPECT_TRUE(warnings_.wait_for("the start has waited ", " s for rank 1 of 3 (never joined)"));
    }
    gather(hub->join(3, rank));
  });
}

TEST_F(MissingRank, OfAFileIsNamed) {
  const TemporaryFolder folder;
  meet("file://" + folder / "id", 1, "the start has waited ", " s for rank 1 of 2 (never joined)");
}

TEST_F(MissingRank, ZeroIsNamedByWhoWaitsForItsFile) {
  const TemporaryFolder folder;
  meet("file://" + folder / "id", 0, "rank 1 has waited ", "for rank 0 to write the unique id to " + folder / "id");
}

TEST_F(MissingRank, ZeroIsNamedByWhoWaitsForItsServer) {
  const ScopedVariable secret("CCOM_SECRET", "0123456789abcdef0123456789abcdef");
  const std::string address = "127.0.0.1:" + std::to_string(start_test_server().id.port);  // free a moment later
  meet("tcp://" + address, 0, "rank 1 has waited ", "for the rendezvous server " + address + " of rank 0: ");
}

TEST(StartWarning, ComesAfterFiveSecondsUnlessItIsWantedSooner) {
  for (const auto& [value, expected] : std::vector<std::pair<const char*, int64_t>>{
           {nullptr, 5000}, {"30000", 5000}, {"300", 300}, {"0", 0}, {"nonsense", 5000}}) {
    const ScopedVariable variable("CCOM_WARN_MS", value);
    EXPECT_EQ(start_warning_ms(), expected) << (value == nullptr ? "unset" : value);
  }
  EXPECT_FALSE(StartWait(0).is_due());
}

}  // namespace
}  // namespace ccom
