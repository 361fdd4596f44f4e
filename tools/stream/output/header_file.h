// Keywords and values that a user gives for the headers of files.
#pragma once

#include <string>
#include <vector>

namespace weft::stream {

struct Keyword {
  std::string name;
  std::string value;
  bool quoted = false;  // a text, whatever it looks like: '0329' is no number
  friend bool operator==(const Keyword&, const Keyword&) = default;
};

class HeaderFile {
 public:
  HeaderFile() = default;
  // Lines of a keyword and its value, as PSRDADA has them ("FREQ 150.0  # MHz"), or as cards
  // ("SRC_NAME= 'B0329+54'", where '' is a quote). What stands behind a # is left out, unless the #
  // is in quotes. Throws kit::Failure for a file that cannot be read, or a line that is none.
  explicit HeaderFile(const std::string& path);

  const std::vector<Keyword>& lines() const { return lines_; }

 private:
  std::vector<Keyword> lines_;
};

// Keywords in their order, each once: what was set first keeps its place, what is set later has its
// value.
class Keywords {
 public:
  // What the user says.
  void add(const HeaderFile& header);
  void set(const std::string& keyword, const std::string& value);
  // Unless it has a value.
  void propose(const std::string& keyword, const std::string& value);
  const std::vector<Keyword>& all() const { return all_; }

 private:
  void put(const Keyword& keyword);
  Keyword* find(const std::string& name);

  std::vector<Keyword> all_;
};

}  // namespace weft::stream
