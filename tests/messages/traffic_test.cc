// SPDX-License-Identifier: Apache-2.0
//
// What arrives: order, tags, any source, sizes, many at once, beside collectives; over every way between ranks.
#include <algorithm>
#include <numeric>

#include "tests/messages/ranks.h"

namespace ccom {
namespace {

class Traffic : public testing::TestWithParam<Way> {
 protected:
  static void with(int nranks, const std::function<void(int, ccomComm_t)>& run) {
    with_message_ranks(nranks, {.way = GetParam()}, run);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Traffic, testing::Values(kShm, kTcp, kOfi, kMixed), way_name);

std::vector<uint8_t> pattern(size_t bytes, unsigned seed) {
  std::vector<uint8_t> data(bytes);
  uint32_t state = seed * 2654435761U + 1;
  for (uint8_t& byte : data) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

TEST_P(Traffic, KeepsTheOrderOfATag) {
  with(3, [](int rank, ccomComm_t comm) {
    constexpr int kCount = 300;
    std::vector<std::vector<int>> got(3, std::vector<int>(kCount, -1));
    std::vector<ccomMessage_t> messages;
    std::vector<int> values(kCount);
    std::iota(values.begin(), values.end(), 0);
    for (int i = 0; i < kCount; ++i) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        messages.push_back(send(&values[static_cast<size_t>(i)], sizeof(int), peer, 7, comm));
        messages.push_back(
            receive(&got[static_cast<size_t>(peer)][static_cast<size_t>(i)], sizeof(int), peer, 7, comm));
      }
    }
    for (ccomMessage_t message : messages) finish(message);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(got[static_cast<size_t>(peer)], values);
    }
  });
}

TEST_P(Traffic, TagsMayCross) {
  for (const size_t bytes : {size_t{8}, size_t{100000}}) {
    with(2, [bytes](int rank, ccomComm_t comm) {
      const std::vector<uint8_t> first = pattern(bytes, 1), second = pattern(bytes, 2);
      if (rank == 0) {
        ccomMessage_t one = send(first.data(), bytes, 1, 1, comm);
        ccomMessage_t two = send(second.data(), bytes, 1, -2, comm);
        finish(one);
        finish(two);
      } else {
        std::vector<uint8_t> got(bytes);
        EXPECT_EQ(finish(receive(got.data(), bytes, 0, -2, comm)), 0);
        EXPECT_EQ(got, second);
        finish(receive(got.data(), bytes, 0, 1, comm));
        EXPECT_EQ(got, first);
      }
    });
  }
}

TEST_P(Traffic, AnySourceGetsOneOfEach) {
  for (const size_t bytes : {size_t{4}, size_t{50000}}) {
    with(4, [bytes](int rank, ccomComm_t comm) {
      std::vector<uint8_t> data(bytes, static_cast<uint8_t>(rank));
      if (rank != 0) return void(finish(send(data.data(), bytes, 0, 3, comm)));
      std::vector<int> seen;
      for (int i = 1; i < 4; ++i) {
        const int peer = finish(receive(data.data(), bytes, CCOM_ANY_RANK, 3, comm));
        seen.push_back(peer);
        EXPECT_EQ(data[0], peer);
        EXPECT_EQ(data[bytes - 1], peer);
      }
      std::ranges::sort(seen);
      EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
    });
  }
}

TEST_P(Traffic, ToOneselfIsACopy) {
  with(2, [](int rank, ccomComm_t comm) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20}) {
      const std::vector<uint8_t> data = pattern(bytes, static_cast<unsigned>(rank));
      std::vector<uint8_t> got(bytes);
      ccomMessage_t sent = send(data.data(), bytes, rank, 1, comm);
      EXPECT_EQ(ccomMessageTest(sent, nullptr), ccomInProgress) << "nobody has received it";
      EXPECT_EQ(finish(receive(got.data(), bytes, CCOM_ANY_RANK, 1, comm)), rank);
      EXPECT_EQ(finish(sent), rank);
      EXPECT_EQ(got, data);
      ccomMessage_t received = receive(got.data(), bytes, rank, 2, comm);
      finish(send(data.data(), bytes, rank, 2, comm));
      finish(received);
    }
  });
}

TEST_P(Traffic, EverySizeArrivesWhole) {
  const std::vector<size_t> sizes = {0, 1, 991, 992, 993, 4096, 65537, size_t{1} << 20, size_t{40} << 20};
  with(2, [&sizes](int rank, ccomComm_t comm) {
    for (const bool receiver_first : {true, false}) {
      for (const size_t bytes : sizes) {
        const std::vector<uint8_t> expected = pattern(bytes, static_cast<unsigned>(bytes));
        std::vector<uint8_t> got(rank == 1 ? bytes : 0);
        const bool is_first = (rank == 1) == receiver_first;
        if (!is_first) {
          ASSERT_OK(ccomBarrier(comm, nullptr));
        }
        ccomMessage_t message =
            rank == 0 ? send(expected.data(), bytes, 1, 0, comm) : receive(got.data(), bytes, 0, 0, comm);
        if (is_first) {
          ASSERT_OK(ccomBarrier(comm, nullptr));
        }
        EXPECT_EQ(finish(message), 1 - rank);
        EXPECT_TRUE(rank == 0 || got == expected) << bytes;
      }
    }
  });
}

TEST_P(Traffic, AThousandBothWaysAtOnce) {
  with(2, [](int rank, ccomComm_t comm) {
    constexpr size_t kCount = 1000;
    std::vector<uint64_t> out(kCount), in(kCount);
    std::iota(out.begin(), out.end(), static_cast<uint64_t>(rank) << 32);
    std::vector<ccomMessage_t> messages;
    for (size_t i = 0; i < kCount; ++i)
      messages.push_back(send(&out[i], sizeof out[i], 1 - rank, static_cast<int64_t>(i % 10), comm));
    for (size_t tag = 10; tag-- > 0;) {
      for (size_t i = tag; i < kCount; i += 10)
        messages.push_back(receive(&in[i], sizeof in[i], 1 - rank, static_cast<int64_t>(tag), comm));
    }
    for (ccomMessage_t message : messages) finish(message);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(in[i], (static_cast<uint64_t>(1 - rank) << 32) + i);
  });
}

// Every rank sends to the next one while collectives of the same communicator run in another thread.
TEST_P(Traffic, ACycleTurnsBesideCollectives) {
  with(4, [](int rank, ccomComm_t comm) {
    std::thread collectives([comm, rank] {
      for (int i = 0; i < 50; ++i) {
        std::vector<float> x(3000, static_cast<float>(rank));
        ASSERT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomFloat32, ccomSum, comm, nullptr));
        ASSERT_EQ(x[2999], 6);
      }
    });
    for (int i = 0; i < 40; ++i) {
      const size_t bytes = i % 2 == 0 ? 100 : 300000;
      const std::vector<uint8_t> out = pattern(bytes, static_cast<unsigned>(rank));
      std::vector<uint8_t> in(bytes);
      ccomMessage_t sent = send(out.data(), bytes, (rank + 1) % 4, 0, comm);
      ccomMessage_t received = receive(in.data(), bytes, (rank + 3) % 4, 0, comm);
      finish(sent);
      finish(received);
      ASSERT_EQ(in, pattern(bytes, static_cast<unsigned>((rank + 3) % 4)));
    }
    collectives.join();
  });
}

// A rank that does nothing but compute still takes part: nobody waits there.
TEST_P(Traffic, MovesThoughNobodyWaits) {
  with(2, [](int rank, ccomComm_t comm) {
    constexpr size_t kBytes = 1 << 20;
    const std::vector<uint8_t> expected = pattern(kBytes, 5);
    std::vector<uint8_t> got(kBytes);
    ccomMessage_t message =
        rank == 0 ? send(expected.data(), kBytes, 1, 0, comm) : receive(got.data(), kBytes, 0, 0, comm);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // nobody waits meanwhile
    int peer = -1;
    EXPECT_OK(ccomMessageTest(message, &peer)) << rank;
    EXPECT_EQ(peer, 1 - rank);
    finish(message);
    EXPECT_TRUE(rank == 0 || got == expected);
  });
}

// Ranks leave one after another; whoever waits for others is not disturbed.
TEST_P(Traffic, WhoIsDoneMayLeave) {
  with_message_ranks(4, {.way = GetParam()}, [](int rank, ccomComm_t& comm) {
    int value = rank;
    if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(60 * rank));
    if (rank == 0) {
      for (int i = 1; i < 4; ++i) {
        EXPECT_EQ(finish(receive(&value, sizeof value, CCOM_ANY_RANK, 0, comm)), i);
        EXPECT_EQ(value, i);
      }
    } else {
      finish(send(&value, sizeof value, 0, 0, comm));
    }
    EXPECT_OK(async_error(comm));
    EXPECT_OK(ccomCommDestroy(std::exchange(comm, nullptr)));
  });
}

TEST(Messages, OneRankAloneTalksToItself) {
  with_message_ranks(1, {}, [](int, ccomComm_t comm) {
    int out = 5, in = 0;
    ccomMessage_t received = receive(&in, sizeof in, CCOM_ANY_RANK, 1, comm);
    EXPECT_EQ(ccomMessageWait(received, 20, nullptr), ccomInProgress);
    finish(send(&out, sizeof out, 0, 1, comm));
    EXPECT_EQ(finish(received), 0);
    EXPECT_EQ(in, 5);
  });
}

TEST(Messages, AreCounted) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::vector<char> data(5000);
    finish(rank == 0 ? send(data.data(), data.size(), 1, 0, comm) : receive(data.data(), data.size(), 0, 0, comm));
    uint64_t bytes = 0;
    EXPECT_OK(ccomCommGetBytesSent(comm, 1 - rank, &bytes));
    EXPECT_EQ(bytes, rank == 0 ? 5000U : 0U);
  });
}

}  // namespace
}  // namespace ccom
