// JSON documents, one a line, as two tools on different machines tell each other. What came and was
// not looked at yet; who reads it from a socket, and how it waits, is its owner's.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weft::kit {

class JsonLines {
 public:
  // `longest`: bytes of a line; more is an attack.
  explicit JsonLines(size_t longest) : longest_(longest) {}

  void add(std::string_view bytes) { unread_ += bytes; }
  // The next document of which all has come. Throws Failure where a line is too long, no JSON, or
  // nested more deeply than tools talk.
  std::optional<nlohmann::json> next();
  bool empty() const { return unread_.empty(); }
  // Whether more than a line is there.
  bool full() const { return unread_.size() > longest_; }
  // What came behind the last document.
  std::string take_rest() { return std::exchange(unread_, {}); }

 private:
  size_t longest_;
  std::string unread_;
};

// With the end of its line.
std::string line_of(const nlohmann::json& document);

}  // namespace weft::kit
