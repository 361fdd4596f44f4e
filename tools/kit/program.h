// Finding the program that `weft run` is to start, as execvp(3) would, and looking at it before it
// runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kit/elf_file.h"

namespace weft::kit {

// What a shell reports when it cannot start a command (POSIX, Shell Command Language 2.8.2).
inline constexpr int kStatusNotExecutable = 126;
inline constexpr int kStatusNotFound = 127;

// Why a program cannot be started: the exit status to end with, and a sentence with a remedy.
struct Refusal {
  int status;
  std::string sentence;
};

// The path of `name`: itself when it has a slash, else the first executable file in `search_path`,
// which is a PATH (an empty element means the current folder). Errors: kStatusNotFound,
// kStatusNotExecutable.
Result<std::string, Refusal> find_program(const std::string& name, std::string_view search_path);

// The program file that the kernel maps in the end when it executes `path`: scripts lead to their
// interpreter, `#!/usr/bin/env NAME` to NAME in `search_path`, up to four levels as in execve(2).
// `path` itself when it is no script, or when its interpreter cannot be found.
std::string follow_interpreters(const std::string& path, std::string_view search_path);

// read_elf() on the file `path`. A file that cannot be read gives nothing: execute permission does
// not imply read permission, so this is no reason to refuse it.
std::optional<Result<ElfFacts, ElfError>> inspect_program(const std::string& path);

// Whether executing `path` switches the process to other rights, so that ld.so ignores
// LD_LIBRARY_PATH and LD_PRELOAD (AT_SECURE in ld.so(8)): "setuid", "setgid" or "file
// capabilities". `effective_uid` 0 changes nothing by the first and the last.
std::optional<std::string> secure_execution_reason(const std::string& path, unsigned effective_uid,
                                                   unsigned effective_gid);

}  // namespace weft::kit
