// The library's own sentences, where the configuration's log statement sends them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "sdp/rules/parse.h"

namespace weft::sdp {

// Levels of libsdp's, from the gravest.
enum class LogLevel : uint8_t {
  error = 9,
  warning = 8,
  summary = 7,  // a socket's way: connect, listen, accept
  match = 4,    // the rule that fitted
  mismatch = 3,
  call = 2,
  debug = 1,
};

// The place of a log file called `name` for such a user: root's below /var/log, or where an
// absolute name says; anybody else's is "log" in a folder /tmp/NAME.UID, or NAME.UID, of its own.
struct LogPlace {
  std::string folder;  // empty: the file itself
  std::string file;
  static LogPlace of(const std::string& name, uid_t user);
};

// Adds a line there. Not to a link, nor to what others own or may read or write, nor to a file with
// another name besides: then it says false.
bool append_line(const LogPlace& place, std::string_view text);

// Keeps no descriptor open: programs close those that they do not know, and get the number for
// something else. errno stays.
class SentenceLog {
 public:
  SentenceLog() = default;
  explicit SentenceLog(LogSettings settings) : settings_(std::move(settings)) {}

  bool wants(LogLevel level) const { return static_cast<int>(level) >= settings_.min_level; }
  void write(LogLevel level, std::string_view text) const;

 private:
  LogSettings settings_;
};

}  // namespace weft::sdp
