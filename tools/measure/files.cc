#include "measure/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "port/fd.h"

namespace weft::measure {
namespace {

FileError file_error(const std::string& path, int number) {
  return {.path = path, .number = number, .what = path + ": " + std::strerror(number)};
}

}  // namespace

Result<std::string, FileError> read_text(const std::string& path) {
  const port::Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.valid()) return fail(file_error(path, errno));
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(file_error(path, errno));
    if (got == 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<int64_t, FileError> read_number(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return fail(text.error());
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stopped, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || stopped != end) {
    return fail(FileError{.path = path, .what = path + " holds no number"});
  }
  return value;
}

}  // namespace weft::measure
