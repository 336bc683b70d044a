// SPDX-License-Identifier: Apache-2.0
//
// What CCOM_LOG means, which room a line is of, and lines as bytes. log_json_test.py reads the JSON.
#include "base/log_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "base/log.h"
#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = source_dir();

TEST(Levels, OfRoomsStandBehindThatOfAllOthers) {
  const char* const levels = "error,bootstrap=debug,tcp=info";
  EXPECT_TRUE(check_log_levels(levels).is_ok());
  EXPECT_EQ(log_level_of(levels, "bootstrap"), LogLevel::Debug);
  EXPECT_EQ(log_level_of(levels, "tcp"), LogLevel::Info);
  EXPECT_EQ(log_level_of(levels, "liveness"), LogLevel::Error);
  EXPECT_EQ(log_level_of(levels, ""), LogLevel::Error);
  EXPECT_EQ(log_level_of("tcp=debug", "shm"), LogLevel::Warn) << "the default is that of CCOM_LOG";
  EXPECT_EQ(log_level_of("tcp=debug,info", "shm"), LogLevel::Info) << "in any order";
  EXPECT_EQ(log_level_of("tcp=debug,info", "tcp"), LogLevel::Debug);
  for (const char* word : {"error", "warn", "info", "debug"}) EXPECT_TRUE(check_log_levels(word).is_ok()) << word;
}

std::string refusal_of(const std::string& levels) {
  const Status checked = check_log_levels(levels);
  EXPECT_EQ(checked.code(), Code::ConfigError) << levels;
  EXPECT_EQ(log_level_of(levels, "node"), LogLevel::Warn) << levels << ": lines as by default";
  return checked.message();
}

TEST(Levels, ThatAreWrongNameTheWordAndWhatThereIs) {
  EXPECT_EQ(refusal_of("wran"),
            "CCOM_LOG=wran: there is no level 'wran': there are error, warn, info and debug; did you mean warn?");
  EXPECT_EQ(
      refusal_of("warn,bootstrp=debug"),
      "CCOM_LOG=warn,bootstrp=debug: there is no room 'bootstrp' (algorithms, api, base, bootstrap, comm, control, "
      "engine, "
      "kernels, liveness, memory, messages, metrics, node, observe, ofi, plan, planner, runner, setup, shm, tcp and "
      "topology); did you mean bootstrap?");
  EXPECT_NE(refusal_of("warn,tcp=debgu")
                .find("no level 'debgu': there are error, warn, info and debug; did you mean "
                      "debug?"),
            std::string::npos);
  EXPECT_NE(refusal_of("tcp").find("did you mean tcp=debug?"), std::string::npos);
  EXPECT_NE(refusal_of("").find("no level ''"), std::string::npos);
  EXPECT_NE(refusal_of("warn,").find("no level ''"), std::string::npos);
  EXPECT_NE(refusal_of("=debug").find("no room ''"), std::string::npos);
  EXPECT_NE(refusal_of("tcp=").find("no level ''"), std::string::npos);
}

TEST(Levels, AreSaidOnceForARoom) {
  EXPECT_NE(check_log_levels("warn,info").message().find("'info' is a second level for all other rooms"),
            std::string::npos);
  EXPECT_NE(check_log_levels("tcp=info,tcp=debug").message().find("'tcp=debug' names the room tcp again"),
            std::string::npos);
}

TEST(Rooms, AreTheFoldersOfTheLibrary) {
  std::set<std::string> folders = {"topology"};
  for (const char* parent : {"src", "transports"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / parent)) {
      if (entry.is_directory() && entry.path().filename() != "sim" && entry.path().filename() != "trace")
        folders.insert(entry.path().filename());
    }
  }
  EXPECT_EQ(std::set<std::string>(log_rooms().begin(), log_rooms().end()), folders);
}

TEST(Rooms, OfLinesAreThoseOfTheirFiles) {
  EXPECT_EQ(LogSource(LogLevel::Warn).room(), "base") << "of tests/base";
  EXPECT_EQ(room_of_file("src/liveness/board.cc"), "liveness");
  EXPECT_EQ(room_of_file("/build/x/ccom/transports/tcp/line.cc"), "tcp");
  EXPECT_EQ(room_of_file("topology/json.cc"), "topology");
  EXPECT_EQ(room_of_file("file.cc"), "");
  EXPECT_EQ(room_of_file("/file.cc"), "");
  EXPECT_EQ(room_of_file(""), "");
}

// A level that is passed on, or kept, would be a line of the room that passes it on.
TEST(Rooms, LinesAreLoggedWhereTheyAreSaid) {
  const std::regex keeps_source(R"(\bLogSource\b)");
  for (const fs::path& parent : {kRoot / "src", kRoot / "transports", kRoot / "topology"}) {
    for (const auto& entry : fs::recursive_directory_iterator(parent)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("log") || !(name.ends_with(".cc") || name.ends_with(".h"))) continue;
      EXPECT_FALSE(std::regex_search(contents_of(entry.path()), keeps_source)) << entry.path();
    }
  }
}

LogLine line_of(const std::string& message) {
  LogLine line;
  line.level = LogLevel::Warn;
  line.room = "tcp";
  line.time_ns = 1'700'000'000'123'456'789;
  line.set_message(message);
  return line;
}

std::string formatted(const LogLine& line, LogFormat format) {
  char bytes[kLogLineBytes];
  const size_t length = format_log_line(line, format, bytes);
  EXPECT_GT(length, 0U);
  EXPECT_LE(length, static_cast<size_t>(PIPE_BUF)) << "one write that does not mix with others";
  const std::string text(bytes, length);
  EXPECT_EQ(std::ranges::count(text, '\n'), format == LogFormat::Json ? 1 : std::ranges::count(line.text(), '\n') + 1);
  EXPECT_TRUE(text.ends_with('\n'));
  return text;
}

TEST(Lines, AsTextSayProcessLevelAndRoom) {
  LogLine line = line_of("a peer is late");
  EXPECT_EQ(formatted(line, LogFormat::Text),
            "ccom[" + std::to_string(::getpid()) + "] warning (tcp): a peer is late\n");
  line.room = {};
  EXPECT_EQ(formatted(line, LogFormat::Text), "ccom[" + std::to_string(::getpid()) + "] warning: a peer is late\n");
}

TEST(Lines, AsJsonSayWhatIsKnown) {
  LogLine line = line_of("say \"hello\"");
  std::string text = formatted(line, LogFormat::Json);
  EXPECT_TRUE(text.starts_with(R"({"time":"2023-11-14T22:13:20.123456Z","level":"warn","room":"tcp","host":")"))
      << text;
  EXPECT_TRUE(text.ends_with(R"("message":"say \"hello\""})"
                             "\n"))
      << text;
  EXPECT_EQ(text.find("rank"), std::string::npos);
  line.rank = 3;
  line.communicator = 0x1f;
  text = formatted(line, LogFormat::Json);
  EXPECT_NE(text.find(R"("communicator":"000000000000001f","rank":3,"message")"), std::string::npos) << text;
}

TEST(Lines, ThatAreTooLongAreCutAndSaySo) {
  for (const std::string& part : {std::string("x"), std::string("\x01"), std::string("\xff"), std::string("\""),
                                  std::string("\xe2\x82\xac"), std::string("x\x01\xe2\x82\xac\"")}) {
    std::string message;
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 5 / 4 + 1) {
      while (message.size() < bytes) message += part;
      const LogLine line = line_of(message);
      EXPECT_EQ(line.is_cut, message.size() >= kLogTextBytes) << message.size();
      const std::string json = formatted(line, LogFormat::Json);
      const bool says_so = json.ends_with("\"truncated\":true}\n");
      EXPECT_TRUE(says_so || !line.is_cut);
      EXPECT_TRUE(!says_so || json.size() > PIPE_BUF * 9 / 10 || line.is_cut) << "no more than it has to";
      EXPECT_EQ(formatted(line, LogFormat::Text).ends_with("...\n"), line.is_cut);
    }
  }
}

TEST(Lines, AreCutBetweenCharacters) {
  std::string message(kLogTextBytes - 3, 'x');
  message += "\xe2\x82\xac and more";
  LogLine line = line_of(message);
  EXPECT_EQ(line.length, kLogTextBytes - 3);
  line.append(" (and 7 more)");
  EXPECT_EQ(line.length, kLogTextBytes - 1);
  EXPECT_TRUE(line.text().ends_with("x (and 7 more)"));
}

}  // namespace
}  // namespace ccom
