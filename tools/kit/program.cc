#include "kit/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace weft::kit {
namespace {

constexpr int kMaxInterpreters = 4;  // execve(2): more gives ELOOP

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_executable(const std::string& path) {
  return is_regular_file(path) && access(path.c_str(), X_OK) == 0;
}

Refusal not_executable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return {kStatusNotExecutable, fmt::format("{} is a folder; name a program in it", path)};
  }
  return {kStatusNotExecutable,
          fmt::format("{} may not be executed by you; try: chmod +x {}", path, path)};
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// The words of the line after "#!", or none when `path` is no script. As the kernel does, only the
// first 255 bytes count.
std::vector<std::string> interpreter_words(const std::string& path) {
  const Descriptor file(path);
  std::array<char, 255> start{};
  const ssize_t got = file.get() < 0 ? -1 : pread(file.get(), start.data(), start.size(), 0);
  std::string_view line(start.data(), got > 0 ? static_cast<size_t>(got) : 0);
  if (!line.starts_with("#!")) return {};
  line =
      line.substr(2, line.find('\n') == std::string_view::npos ? line.size() : line.find('\n') - 2);
  std::vector<std::string> words;
  constexpr std::string_view kBlanks = " \t\r";
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = line.find_first_not_of(kBlanks, at)) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// The program that `#!/usr/bin/env [OPTION]... [NAME=VALUE]... NAME` starts (env(1)).
std::optional<std::string> program_of_env(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "-u" || word == "--unset" || word == "-C" || word == "--chdir") {
      ++i;  // its argument
      continue;
    }
    // What -S splits is split already.
    for (const std::string_view split : {"-S", "--split-string="}) {
      if (word.starts_with(split)) word.remove_prefix(split.size());
    }
    if (word.empty() || word.starts_with('-') || word.find('=') != std::string_view::npos) continue;
    return std::string{word};
  }
  return std::nullopt;
}

}  // namespace

Result<std::string, Refusal> find_program(const std::string& name, std::string_view search_path) {
  if (name.empty()) return fail(Refusal{kStatusNotFound, "the program's name is empty"});
  if (name.find('/') != std::string::npos) {
    if (is_executable(name)) return name;
    if (access(name.c_str(), F_OK) == 0) return fail(not_executable(name));
    if (errno == EACCES) {
      return fail(Refusal{kStatusNotExecutable,
                          fmt::format("{} lies in a folder that you may not enter", name)});
    }
    return fail(Refusal{kStatusNotFound, fmt::format("{} does not exist", name)});
  }
  std::optional<std::string> barred;
  for (size_t at = 0; at <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', at), search_path.size());
    const std::string_view folder = search_path.substr(at, end - at);
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_executable(path)) return path;
    if (!barred && is_regular_file(path)) barred = std::move(path);
    at = end + 1;
  }
  if (barred) return fail(not_executable(*barred));
  return fail(
      Refusal{kStatusNotFound,
              fmt::format("{0} is not in PATH; give its path, or install it ('apt-file search "
                          "bin/{0}' names the package)",
                          name)});
}

std::string follow_interpreters(const std::string& path, std::string_view search_path) {
  std::string current = path;
  for (int level = 0; level < kMaxInterpreters; ++level) {
    const std::vector<std::string> words = interpreter_words(current);
    if (words.empty()) break;
    std::string next = words[0];
    if (next.ends_with("/env")) {
      const auto name = program_of_env(words);
      if (!name) break;
      next = *name;
    }
    auto found = find_program(next, search_path);
    if (!found) break;
    current = std::move(*found);
  }
  return current;
}

std::optional<Result<ElfFacts, ElfError>> inspect_program(const std::string& path) {
  const Descriptor file(path);
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return read_elf({});
  void* content = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (content == MAP_FAILED) return std::nullopt;
  auto facts = read_elf({static_cast<const std::byte*>(content), size});
  munmap(content, size);
  return facts;
}

std::optional<std::string> secure_execution_reason(const std::string& path, unsigned effective_uid,
                                                   unsigned effective_gid) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  if ((info.st_mode & S_ISUID) != 0 && effective_uid != 0 && info.st_uid != effective_uid) {
    return "setuid";
  }
  // Without group execute permission the bit means mandatory locking and changes no rights
  // (stat(2)).
  if ((info.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && info.st_gid != effective_gid) {
    return "setgid";
  }
  if (effective_uid != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "file capabilities";
  }
  return std::nullopt;
}

}  // namespace weft::kit
