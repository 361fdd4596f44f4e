// A file that has its name when it is whole: until then it is NAME.part, and stays so when the
// program is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "port/fd.h"
#include "stream/output/output_options.h"

namespace weft::stream {

// All throw kit::Failure. One owner, one thread at a time.
class OutputFile {
 public:
  // Whether a file of this name, whole or not, is there.
  static bool exists(const std::string& name);
  // Whether files of these names can be made: throws kit::Failure where their folder is not there
  // or cannot be written, or, unless they are overwritten, a file has the name that all begin with.
  static void check_names(const FileName& name, uint32_t streams, bool overwrite);
  // `overwrite`: in the place of one that is there; else it is left alone and this one fails.
  OutputFile(std::string name, bool overwrite);

  const std::string& name() const { return name_; }
  const port::Fd& fd() const { return fd_; }
  uint64_t size() const { return size_; }
  // Behind what is there.
  void append(std::span<const std::byte> bytes);
  // In the place of its first bytes.
  void rewrite_begin(std::span<const std::byte> bytes);
  // It is whole, and takes its name. `on_disk`: it stays when the machine fails from then on, and
  // what the disk did not take is told; that may take a while.
  void finish(bool on_disk);

 private:
  void write(std::span<const std::byte> bytes, uint64_t at);

  std::string name_;
  std::string part_;
  bool overwrite_;
  port::Fd fd_;
  uint64_t size_ = 0;
  uint64_t on_its_way_ = 0;  // to the disk
};

}  // namespace weft::stream
