// SPDX-License-Identifier: Apache-2.0
#include "tests/tidy/type_names.h"

#include <cctype>
#include <optional>

namespace ccom::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Index behind a string, character or raw string that begins at `at`.
size_t skip_literal(std::string_view text, size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    const std::string end = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
    return std::min(text.find(end, open), text.size() - end.size()) + end.size();
  }
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

size_t skip_line(std::string_view text, size_t at, bool continues) {
  while (at < text.size() && (text[at] != '\n' || (continues && text[at - 1] == '\\'))) ++at;
  return at;
}

// Words, "::" and single characters; no comments, literals and preprocessor lines.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  bool is_line_start = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\n') {
      is_line_start = true;
      ++at;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (c == '#' && is_line_start) {
      at = skip_line(text, at, true);
    } else if (text.substr(at, 2) == "//") {
      at = skip_line(text, at, false);
    } else if (text.substr(at, 2) == "/*") {
      at = std::min(text.find("*/", at), text.size() - 2) + 2;
    } else if (is_word(c)) {
      const size_t first = at;
      // 1'000 is one word.
      while (at < text.size() && (is_word(text[at]) || (text[at] == '\'' && std::isdigit(text[first]) != 0))) ++at;
      tokens.emplace_back(text.substr(first, at - first));
      is_line_start = false;
    } else if (c == '"' || c == '\'') {
      at = skip_literal(text, at);
    } else {
      const size_t length = text.substr(at, 2) == "::" ? 2 : 1;
      tokens.emplace_back(text.substr(at, length));
      at += length;
      is_line_start = false;
    }
  }
  return tokens;
}

class Scan {
 public:
  explicit Scan(std::string_view source) : tokens_(tokens_of(source)) {}

  std::vector<std::string> run() {
    for (; at_ < tokens_.size(); ++at_) {
      const std::string& token = tokens_[at_];
      if (token == "namespace" && is_open()) {
        read_namespace();
      } else if (token == "extern" && peek(1) == "{") {  // the "C" is gone
        scopes_.push_back("");
        ++at_;
      } else if (token == "{") {
        scopes_.emplace_back(std::nullopt);
      } else if (token == "}" && !scopes_.empty()) {
        scopes_.pop_back();
      } else if (is_open() && (token == "class" || token == "struct" || token == "union" || token == "enum")) {
        read_type();
      }
    }
    return std::move(found_);
  }

 private:
  // Only named namespaces around?
  bool is_open() const {
    for (const auto& scope : scopes_) {
      if (!scope) return false;
    }
    return true;
  }
  std::string peek(size_t ahead) const { return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : ""; }

  void read_namespace() {
    std::string name;
    size_t ahead = 1;
    for (; peek(ahead) != "{"; ++ahead) {
      if (peek(ahead).empty() || peek(ahead) == "=" || peek(ahead) == ";") return;  // an alias, or "using namespace"
      if (peek(ahead) != "inline") name += peek(ahead);
    }
    at_ += ahead;
    scopes_.push_back(name.empty() ? std::optional<std::string>() : name + "::");
  }

  // Index behind brackets that open at `ahead`.
  size_t behind_brackets(size_t ahead) const {
    int depth = 0;
    for (; !peek(ahead).empty(); ++ahead) {
      if (peek(ahead) == "(" || peek(ahead) == "[") ++depth;
      if (peek(ahead) == ")" || peek(ahead) == "]") --depth;
      if (depth == 0) return ahead + 1;
    }
    return ahead;
  }

  void read_type() {
    size_t ahead = 1;
    while (peek(ahead) == "class" || peek(ahead) == "struct" || peek(ahead) == "[" || peek(ahead) == "alignas") {
      if (peek(ahead) == "alignas") ++ahead;
      ahead = peek(ahead) == "class" || peek(ahead) == "struct" ? ahead + 1 : behind_brackets(ahead);
    }
    const std::string name = peek(ahead++);
    if (name.empty() || !is_word(name[0])) return;
    if (peek(ahead) == "final") ++ahead;
    if (peek(ahead) == ":") {
      while (peek(ahead) != "{" && peek(ahead) != ";" && !peek(ahead).empty()) ++ahead;
    }
    if (peek(ahead) != "{") return;
    std::string qualified;
    for (const auto& scope : scopes_) qualified += *scope;
    found_.push_back(qualified + name);
    at_ += ahead - 1;
  }

  std::vector<std::string> tokens_;
  size_t at_ = 0;
  std::vector<std::optional<std::string>> scopes_;  // of each open brace: "ccom::"; none: no named namespace
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> type_names(std::string_view source) { return Scan(source).run(); }

}  // namespace ccom::tidy
