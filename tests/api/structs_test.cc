// SPDX-License-Identifier: Apache-2.0
//
// Programs compiled with an earlier or later ccom.h than the library: their structures are shorter or longer. Each lies
// at the end of a page, so that a byte read or written behind it ends the test.
#include <ccom/ccom.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

#include "tests/harness/world.h"

namespace ccom {
namespace {

constexpr size_t kHead = offsetof(ccomConfig_t, commName);  // size, magic, version
constexpr uint32_t kLaterVersion = 1234;                    // 0.12.34

// A structure of `size` bytes: the start of T, and zeros where it is longer.
template <typename T>
class OfSize {
 public:
  OfSize(size_t size, T from) : size_(size) {
    memory_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + page_, page_, PROT_NONE), 0);
    from.size = size;
    if (size > sizeof from) from.version = kLaterVersion;
    std::memcpy(bytes(), &from, std::min(size, sizeof from));
  }
  ~OfSize() { munmap(memory_, 2 * page_); }
  OfSize(const OfSize&) = delete;
  OfSize& operator=(const OfSize&) = delete;

  char* bytes() { return memory_ + page_ - size_; }
  T* get() { return reinterpret_cast<T*>(bytes()); }
  // As far as it goes, the rest filled with a byte that the library does not write.
  T whole() {
    T copy;
    std::memset(&copy, 0x55, sizeof copy);
    std::memcpy(&copy, bytes(), std::min(size_, sizeof copy));
    return copy;
  }

 private:
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t size_;
  char* memory_;
};

ccomResult_t start(const ccomConfig_t* config) {
  ccomComm_t comm = nullptr;
  const ccomResult_t result = ccomCommInitAll(&comm, 1, config);
  EXPECT_OK(ccomCommDestroy(comm));
  return result;
}

TEST(Structs, ConfigsOfAllEarlierSizesAreAccepted) {
  for (size_t size = kHead; size <= sizeof(ccomConfig_t); size += alignof(ccomConfig_t)) {
    OfSize<ccomConfig_t> config(size, CCOM_CONFIG_INIT);
    EXPECT_OK(start(config.get())) << size << " bytes";
  }
}

TEST(Structs, WhatAnEarlierConfigHasIsReadAndNothingElse) {
  ccomConfig_t wrong = CCOM_CONFIG_INIT;
  wrong.roundingSeed = -7;
  const size_t behind = offsetof(ccomConfig_t, roundingSeed) + sizeof wrong.roundingSeed;
  OfSize<ccomConfig_t> with(behind, wrong);
  EXPECT_EQ(start(with.get()), ccomInvalidArgument);
  EXPECT_THAT(error_text(), HasSubstr("config.roundingSeed is -7"));
  OfSize<ccomConfig_t> without(offsetof(ccomConfig_t, roundingSeed), wrong);
  EXPECT_OK(start(without.get()));
}

TEST(Structs, ALaterConfigIsAcceptedIfItSetsNothingNew) {
  OfSize<ccomConfig_t> config(sizeof(ccomConfig_t) + 24, CCOM_CONFIG_INIT);
  EXPECT_OK(start(config.get()));
  for (size_t i = sizeof(ccomConfig_t); i < sizeof(ccomConfig_t) + 24; ++i) {
    config.bytes()[i] = 1;
    EXPECT_EQ(start(config.get()), ccomInvalidArgument) << "byte " << i;
    config.bytes()[i] = 0;
  }
  const std::string mine =
      std::to_string(CCOM_MAJOR) + "." + std::to_string(CCOM_MINOR) + "." + std::to_string(CCOM_PATCH);
  EXPECT_THAT(error_text(), HasSubstr("this library, ccom " + mine));
  EXPECT_THAT(error_text(), HasSubstr("compiled for ccom 0.12.34"));
  EXPECT_THAT(error_text(), HasSubstr(std::to_string(sizeof(ccomConfig_t) + 24) + " bytes"));
}

TEST(Structs, WhatNoMacroInitialisedIsRefused) {
  ccomConfig_t config;
  std::memset(&config, 0, sizeof config);
  EXPECT_EQ(start(&config), ccomInvalidArgument);
  config.size = sizeof config;
  EXPECT_EQ(start(&config), ccomInvalidArgument);
  EXPECT_THAT(error_text(), HasSubstr("config was not initialised with CCOM_CONFIG_INIT"));
  for (const size_t size : {size_t{0}, kHead - 8, sizeof config - 1}) {
    config = CCOM_CONFIG_INIT;
    config.size = size;
    EXPECT_EQ(start(&config), ccomInvalidArgument) << size;
  }
  config = CCOM_CONFIG_INIT;
  config.reserved = 1;
  EXPECT_EQ(start(&config), ccomInvalidArgument);
  ccomErrorInfo_t error = CCOM_ERROR_INFO_INIT;
  error.magic = 0;
  EXPECT_EQ(ccomGetErrorInfo(nullptr, &error), ccomInvalidArgument);
  EXPECT_EQ(ccomGetErrorInfo(nullptr, nullptr), ccomInvalidArgument);
}

// Every size: what lies within is as in the whole structure, later fields are 0, and the head is the caller's.
template <typename T>
void returns_every_size(const T& init, const std::function<ccomResult_t(T*)>& fill) {
  T all = init;
  ASSERT_OK(fill(&all));
  for (size_t size = kHead; size <= sizeof(T) + 16; size += alignof(T)) {
    OfSize<T> given(size, init);
    std::memset(given.bytes() + kHead, 0x77, size - kHead);
    T expected = all;
    expected.size = size;
    expected.version = given.get()->version;
    ASSERT_OK(fill(given.get())) << size;
    EXPECT_EQ(std::memcmp(given.bytes(), &expected, std::min(size, sizeof(T))), 0) << size;
    for (size_t i = sizeof(T); i < size; ++i) EXPECT_EQ(given.bytes()[i], 0) << size << ", byte " << i;
  }
}

TEST(Structs, ErrorsAreReturnedAsFarAsTheCallerHasFields) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    float x[2] = {};
    ASSERT_EQ(ccomAllReduce(x, x, 1 + static_cast<size_t>(rank), ccomFloat32, ccomSum, comm, nullptr), ccomMismatch);
    returns_every_size<ccomErrorInfo_t>(CCOM_ERROR_INFO_INIT,
                                        [comm](ccomErrorInfo_t* info) { return ccomGetErrorInfo(comm, info); });
    OfSize<ccomErrorInfo_t> without_text(offsetof(ccomErrorInfo_t, text), CCOM_ERROR_INFO_INIT);
    ASSERT_OK(ccomGetErrorInfo(comm, without_text.get()));
    EXPECT_EQ(without_text.whole().result, ccomMismatch);
    EXPECT_STREQ(without_text.whole().operation, "allreduce");
    EXPECT_EQ(without_text.whole().text[0], 0x55);
  });
}

TEST(Structs, CommunicatorsAreDescribedAsFarAsTheCallerHasFields) {
  with_ranks(2, [](int, ccomComm_t comm) {
    ASSERT_OK(ccomBarrier(comm, nullptr));
    returns_every_size<ccomCommInfo_t>(CCOM_COMM_INFO_INIT,
                                       [comm](ccomCommInfo_t* info) { return ccomCommGetInfo(comm, info); });
  });
}

}  // namespace
}  // namespace ccom
