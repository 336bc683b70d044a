// SPDX-License-Identifier: Apache-2.0
#include "tests/tidy/type_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/harness/paths.h"

namespace ccom::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kSample = R"(
// struct InComment {};
#define MAKE(name) \
  struct name {}
const char* const kText = "struct InText {";
class Global;
namespace ccom {
namespace shm = other;
struct Message {
  struct Nested {};
  enum class Kind { A, B };
};
template <class T, typename U = std::vector<int>>
class Box final : public Base<T, U> {};
template <>
struct std::hash<Message> {};
struct Message::Outside {};
enum class [[nodiscard]] Code : uint8_t { Ok };
enum class Later : uint8_t;
struct alignas(sizeof(int[4])) Line {};
struct Message make(struct Message* from) { class Local {}; return {1'000'000, '"'}; }
namespace {
class Hidden {};
}
namespace tcp::wire {
union Word { int i; };
}
}
extern "C" {
struct ccomThing { int a; };
}
)";

TEST(TypeNames, AreThoseDefinedAtNamespaceScope) {
  EXPECT_THAT(type_names(kSample), ElementsAre("ccom::Message", "ccom::Box", "ccom::Code", "ccom::Line",
                                               "ccom::tcp::wire::Word", "ccomThing"));
  EXPECT_THAT(type_names(""), IsEmpty());
  EXPECT_THAT(type_names("struct"), IsEmpty());
}

using Files = std::map<std::string, std::string>;  // text by name

// "ccom::Message: a.h and b.cc", for each name that two files define.
std::vector<std::string> duplicates(const Files& files) {
  std::map<std::string, std::string> first;
  std::vector<std::string> found;
  for (const auto& [file, text] : files) {
    for (const std::string& name : type_names(text)) {
      const auto [known, is_new] = first.try_emplace(name, file);
      if (!is_new && known->second != file) found.push_back(name + ": " + known->second + " and " + file);
    }
  }
  return found;
}

TEST(TypeNames, ADuplicateIsFound) {
  EXPECT_THAT(duplicates({{"a.h", "namespace ccom { struct Message {}; }"},
                          {"b.cc", "namespace ccom { namespace { class Other {}; }\nclass Message final : A {}; }"},
                          {"c.h", "namespace ccom::sim { struct Message {}; struct Other {}; }"},
                          {"d.h", "namespace ccom { struct Message; }"}}),
              ElementsAre("ccom::Message: a.h and b.cc"));
}

TEST(TypeNames, AreUniqueInTheTree) {
  const fs::path root = source_dir();
  Files files;
  for (const char* folder : {"src", "transports", "topology", "bench", "tools", "python"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      std::ifstream file(entry.path());
      files[fs::relative(entry.path(), root)] = {std::istreambuf_iterator<char>(file), {}};
    }
  }
  size_t names = 0;
  for (const auto& [file, text] : files) names += type_names(text).size();
  EXPECT_GT(names, 300U) << "the scan no longer sees the types";
  EXPECT_THAT(duplicates(files), IsEmpty());
}

}  // namespace
}  // namespace ccom::tidy
