#include "stream/output/header_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "kit/failure.h"

namespace weft::stream {
namespace {

std::string trimmed(const std::string& text) {
  const char* const blank = " \t\r";
  const size_t begin = text.find_first_not_of(blank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

// Of a card, without its sign, quotes and comment.
std::string value_of(const std::string& text) {
  if (!text.starts_with('=')) return text;
  const std::string value = trimmed(text.substr(1));
  if (value.starts_with('\'')) return trimmed(value.substr(1, value.find('\'', 1) - 1));
  return trimmed(value.substr(0, value.find(" /")));
}

bool is_text(const std::string& line) {
  for (const char c : line) {
    if ((c < ' ' && c != '\t') || c > '~') return false;
  }
  return true;
}

}  // namespace

HeaderFile::HeaderFile(const std::string& path) {
  std::ifstream file{path};
  if (!file) throw kit::system_failure(path);
  unsigned number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    // PSRDADA's own files end in zeroes.
    if (const size_t end = line.find('\0'); end != std::string::npos) line.resize(end);
    if (!is_text(line)) {
      throw kit::Failure{fmt::format("{}:{}: this is no line of text in ASCII", path, number)};
    }
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty() || line == "END") continue;
    const size_t end = line.find_first_of(" \t=");
    const std::string value = end == std::string::npos ? "" : value_of(trimmed(line.substr(end)));
    if (value.empty()) {
      throw kit::Failure{
          fmt::format("{}:{}: a line has a keyword and a value: \"{}\"", path, number, line)};
    }
    lines_.emplace_back(line.substr(0, end), value);
  }
}

void Keywords::add(const HeaderFile& header) {
  for (const auto& [keyword, value] : header.lines()) set(keyword, value);
}

std::string* Keywords::find(const std::string& keyword) {
  for (auto& [name, value] : all_) {
    if (name == keyword) return &value;
  }
  return nullptr;
}

void Keywords::set(const std::string& keyword, const std::string& value) {
  if (std::string* there = find(keyword)) {
    *there = value;
  } else {
    all_.emplace_back(keyword, value);
  }
}

void Keywords::propose(const std::string& keyword, const std::string& value) {
  if (find(keyword) == nullptr) all_.emplace_back(keyword, value);
}

}  // namespace weft::stream
