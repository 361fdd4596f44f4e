// What `weft run` must know of a program file before it starts it: the parts of ELF's dynamic
// section that decide which libraries ld.so(8) takes. Source: System V ABI, chapters 4 and 5;
// elf(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::kit {

enum class ElfError : uint8_t {
  not_elf,            // no ELF magic: a script, or data
  not_64_bit,         // ELFCLASS32
  not_little_endian,  // ELFDATA2MSB
  other_machine,      // for a processor other than this one
  malformed,          // an offset or a size leads out of the file
};

struct ElfFacts {
  // ld.so loads it (PT_INTERP). A static program is not: no library can take another's place in it.
  bool has_interpreter = false;
  std::vector<std::string> needed;     // DT_NEEDED, in order
  std::optional<std::string> rpath;    // DT_RPATH: searched before LD_LIBRARY_PATH
  std::optional<std::string> runpath;  // DT_RUNPATH: searched after it, and switches DT_RPATH off

  // LD_LIBRARY_PATH may lose against a folder that the program names itself.
  bool rpath_counts() const { return rpath.has_value() && !runpath.has_value(); }
};

// Reads `file`, the whole content of a program file. Never reads outside of it, whatever it holds.
Result<ElfFacts, ElfError> read_elf(Bytes file);

// The part of a sentence that follows "PROGRAM ".
const char* describe(ElfError error);

}  // namespace weft::kit
