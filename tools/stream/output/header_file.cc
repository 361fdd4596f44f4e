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

// The end of a text whose first quote stands at `begin`: where its last one does, or the end.
size_t end_of_text(const std::string& line, size_t begin) {
  for (size_t at = begin + 1; at < line.size(); ++at) {
    if (line[at] != '\'') continue;
    if (at + 1 == line.size() || line[at + 1] != '\'') return at;
    ++at;  // a quote of the text's own
  }
  return line.size();
}

// Where the text of a card begins, with its quote; npos for anything else.
size_t text_of_card(const std::string& line) {
  const size_t sign = line.find_first_of(" \t=");
  const size_t equals = sign == std::string::npos ? sign : line.find_first_not_of(" \t", sign);
  if (equals == std::string::npos || line[equals] != '=') return std::string::npos;
  const size_t begin = line.find_first_not_of(" \t", equals + 1);
  return begin != std::string::npos && line[begin] == '\'' ? begin : std::string::npos;
}

std::string without_comment(const std::string& line) {
  const size_t text = text_of_card(line);
  return line.substr(0, line.find('#', text == std::string::npos ? 0 : end_of_text(line, text)));
}

// Without the quotes around it, and without the blanks at its end, which say nothing in FITS.
std::string unquoted(const std::string& line, size_t begin) {
  const size_t end = end_of_text(line, begin);
  std::string value;
  for (size_t at = begin + 1; at < end; ++at) {
    value += line[at];
    if (line[at] == '\'') ++at;
  }
  return trimmed(value);
}

// Of a card, without its sign and comment.
std::string value_of(const std::string& text) {
  if (!text.starts_with('=')) return text;
  const std::string value = trimmed(text.substr(1));
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
    line = trimmed(without_comment(line));
    if (line.empty() || line == "END") continue;
    const size_t end = line.find_first_of(" \t=");
    const size_t text = text_of_card(line);
    const bool quoted = text != std::string::npos;
    const std::string value = quoted                     ? unquoted(line, text)
                              : end == std::string::npos ? ""
                                                         : value_of(trimmed(line.substr(end)));
    if (value.empty()) {
      throw kit::Failure{
          fmt::format("{}:{}: a line has a keyword and a value: \"{}\"", path, number, line)};
    }
    lines_.push_back({.name = line.substr(0, end), .value = value, .quoted = quoted});
  }
}

void Keywords::add(const HeaderFile& header) {
  for (const Keyword& line : header.lines()) put(line);
}

Keyword* Keywords::find(const std::string& name) {
  for (Keyword& keyword : all_) {
    if (keyword.name == name) return &keyword;
  }
  return nullptr;
}

void Keywords::put(const Keyword& keyword) {
  if (Keyword* there = find(keyword.name)) {
    *there = keyword;
  } else {
    all_.push_back(keyword);
  }
}

void Keywords::set(const std::string& keyword, const std::string& value) {
  put({.name = keyword, .value = value});
}

void Keywords::propose(const std::string& keyword, const std::string& value) {
  if (find(keyword) == nullptr) all_.push_back({.name = keyword, .value = value});
}

}  // namespace weft::stream
