// SPDX-License-Identifier: Apache-2.0
//
// Which types C++ sources define at namespace scope. Two files that define different types of one name break the one
// definition rule without a word from compiler or linker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <regex>

#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace ccom::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// "ccom::shm::Channel" for every class, struct, union and enum with a body, in order: by what clang-format puts at the
// beginning of a line. Left out: what is nested in types or functions or stands in an anonymous namespace, and
// specialisations. Both branches of an #if count.
std::vector<std::string> type_names(const std::string& source) {
  // A namespace for forward declarations alone, the begin and the end of another one, a type's definition.
  static const std::regex entry(
      R"(\n(?:namespace [\w:]* ?\{\n[^{}]*\n\}(?:  //.*)?(?=\n)|namespace ([\w:]* ?)\{|(\}  // namespace)|)"
      R"((?:class|struct|union|enum|enum class) (?:\[\[.*\]\] )?(?:alignas\(.*\) )?(\w+)(?:\s+final)?(?:\s+:[^;{]*)? \{))");
  std::vector<std::string> names, scopes;
  const std::string text = "\n" + source;
  for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it) {
    const std::smatch& match = *it;
    if (match[1].matched) {
      const std::string name = match[1];
      scopes.push_back(name.empty() ? name : name.substr(0, name.size() - 1) + "::");
    } else if (match[2].matched && !scopes.empty()) {
      scopes.pop_back();
    } else if (match[3].matched && std::ranges::find(scopes, "") == scopes.end()) {
      names.push_back(std::accumulate(scopes.begin(), scopes.end(), std::string()) + match[3].str());
    }
  }
  EXPECT_THAT(scopes, IsEmpty()) << "this does not say where a namespace ends: " << source.substr(0, 1000);
  return names;
}

constexpr const char* kSample = R"(
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
class Box final : public Base<T, U>,
                  public Other {};
template <>
struct std::hash<Message> {};
struct Message::Outside {};
enum class [[nodiscard]] Code : uint8_t { Ok };
enum class Later : uint8_t;
struct alignas(sizeof(int[4])) Line {};
struct Message make(struct Message* from) {
  class Local {};
  return {1'000'000, '"'};
}
namespace {
class Hidden {};
}  // namespace
namespace other {
class Declared;
}
namespace tcp::wire {
union Word {
  int i;
};
}  // namespace tcp::wire
}  // namespace ccom
extern "C" {
struct ccomThing {
  int a;
};
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
  EXPECT_THAT(
      duplicates({{"a.h", "namespace ccom {\nstruct Message {};\n}  // namespace ccom\n"},
                  {"b.cc",
                   "namespace ccom {\nnamespace {\nclass Other {};\n}  // namespace\n"
                   "class Message final : A {};\n}  // namespace ccom\n"},
                  {"c.h", "namespace ccom::sim {\nstruct Message {};\nstruct Other {};\n}  // namespace ccom::sim\n"},
                  {"d.h", "namespace ccom {\nstruct Message;\n}  // namespace ccom\n"}}),
      ElementsAre("ccom::Message: a.h and b.cc"));
}

TEST(TypeNames, AreUniqueInTheTree) {
  const fs::path root = source_dir();
  Files files;
  for (const char* folder : {"src", "transports", "topology", "bench", "tools", "python"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      files[fs::relative(entry.path(), root)] = contents_of(entry.path());
    }
  }
  size_t names = 0;
  for (const auto& [file, text] : files) names += type_names(text).size();
  EXPECT_GT(names, 300U) << "the scan no longer sees the types";
  EXPECT_THAT(duplicates(files), IsEmpty());
}

}  // namespace
}  // namespace ccom::tidy
