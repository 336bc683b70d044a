// SPDX-License-Identifier: Apache-2.0
//
// The command lines of ccom's programs, alike in what they accept and how they end: lists are split at commas, "-np" is
// "--np", --help and --version end with 0, a wrong word ends with 3 and a sentence; --completion prints the completion
// script of a shell. CLI11 does the work; it is compiled once, in command_line.cc, since each file that includes it
// takes 15 seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ccom {

struct ProgramShape;

class CommandLine {
 public:
  struct Hint;  // what completion offers

  // What an option's value must be. Each returns the option itself.
  class Option {
   public:
    Option(CLI::Option* option, Hint* hint) : option_(option), hint_(hint) {}

    const Option& range(int low, int high) const;  // both included
    const Option& range(double low, double high) const;
    const Option& positive() const;
    const Option& non_negative() const;
    const Option& one_of(std::initializer_list<const char*> words) const;
    const Option& offers(std::vector<std::string> words) const;  // to complete; others may be valid
    const Option& file() const;                                  // a name of a file; with offers(), possibly
    const Option& size() const;                                  // "64M" is 64 * 2^20
    const Option& required() const;
    const Option& hidden() const;
    const Option& excludes(const Option& other) const;

   private:
    CLI::Option* option_;
    Hint* hint_;
  };

  CommandLine(const std::string& name, const std::string& description, const std::string& footer = "");
  ~CommandLine();

  // Names as "-b,--begin", or one without dashes for a word at a place. The value keeps what it holds, as the default,
  // if the option is not given.
  Option option(const std::string& names, int& value, const std::string& help);
  Option option(const std::string& names, size_t& value, const std::string& help);
  Option option(const std::string& names, float& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::vector<int>& values, const std::string& help);
  Option option(const std::string& names, std::vector<size_t>& values, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option flag(const std::string& names, bool& value, const std::string& help);

  struct Parsed {
    std::optional<std::string> answer;  // to --help, --version, --completion: to be printed, and nothing else done
    std::optional<std::string> wrong;   // what is
  };
  // `words` without the program's name.
  Parsed parse(const std::vector<std::string>& words);

  // For main(): prints the answer or what is wrong; the exit code if the program is to end with that.
  std::optional<int> exit_code(const std::vector<std::string>& words);

 private:
  Option added(CLI::Option* option);
  ProgramShape shape() const;
  Parsed complete(const std::string& shell) const;

  std::unique_ptr<CLI::App> app_;
  std::map<const CLI::Option*, Hint> hints_;
};

}  // namespace ccom
