#include "tests/support/spec_section.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace weft::test {
namespace {

// "## 3. Title" and "### 3.2 Title" have the numbers 3 and 3.2; other lines have none.
std::string number_in(const std::string& line) {
  if (!line.starts_with("##")) return {};
  std::istringstream in(line.substr(line.find_first_not_of('#')));
  std::string number;
  in >> number;
  if (number.ends_with('.')) number.pop_back();
  return number.find_first_not_of("0123456789.") == std::string::npos ? number : std::string();
}

std::vector<std::string> page_lines(std::string_view page) {
  const auto path = std::filesystem::path(WEFT_SPEC_DIR) / (std::string(page) + ".md");
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no page " + path.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> section_lines(std::string_view page, std::string_view number) {
  std::vector<std::string> lines;
  bool found = false;
  for (const std::string& line : page_lines(page)) {
    if (const std::string n = number_in(line); !n.empty()) {
      if (found) return lines;
      found = n == number;
    } else if (found) {
      lines.push_back(line);
    }
  }
  if (!found) {
    throw std::runtime_error(std::string(page) + ".md has no section " + std::string(number));
  }
  return lines;
}

// The words of these lines, with single blanks.
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    for (std::string word; in >> word;) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace

std::string page_text(std::string_view page) {
  return joined(page_lines(page));
}

std::string section_text(std::string_view page, std::string_view number) {
  return joined(section_lines(page, number));
}

std::vector<std::vector<std::string>> section_rows(std::string_view page, std::string_view number) {
  std::vector<std::vector<std::string>> rows;
  bool in_table = false;
  for (const std::string& line : section_lines(page, number)) {
    if (!line.starts_with("| ")) {
      in_table = line.starts_with("|---");  // the heading stands above
      continue;
    }
    if (!in_table) continue;
    std::vector<std::string> cells;
    for (size_t at = 2; at < line.size();) {
      const size_t end = std::min(line.find(" |", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace weft::test
