// Keywords and values that a user gives for the headers of files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::stream {

class HeaderFile {
 public:
  HeaderFile() = default;
  // Lines of a keyword and its value, as PSRDADA has them ("FREQ 150.0  # MHz"), or as cards
  // ("SRC_NAME= 'B0329+54'"). What stands behind a # is left out. Throws kit::Failure for a file
  // that cannot be read, or a line that is none.
  explicit HeaderFile(const std::string& path);

  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
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
  const std::vector<std::pair<std::string, std::string>>& all() const { return all_; }

 private:
  std::string* find(const std::string& keyword);

  std::vector<std::pair<std::string, std::string>> all_;
};

}  // namespace weft::stream
