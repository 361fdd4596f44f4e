#include "port/fault_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "config/options.h"
#include "port/calls.h"
#include "port/capture.h"
#include "port/memory_file.h"
#include "port/own_file.h"

namespace weft::port {

FaultLog* FaultLog::of_process() {
  const std::string& path = config::options().fault_log;
  if (path.empty()) return nullptr;
  static FaultLog& log = *new FaultLog(capture_name(path, ::getpid()));
  return &log;
}

FaultLog::FaultLog(const std::string& path) {
  auto file = append_to_own_file(path);
  if (file.ok()) {
    file_ = std::move(*file);
  } else {
    WEFT_LOG(warn, "option fault_log: %s: %s; give it a name that is free", path.c_str(),
             file.error().to_string().c_str());
  }
}

void FaultLog::lost(const char* way, const Address& peer, size_t bytes, Bytes front) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string line = std::string{way} + " " + peer.to_string() + " " + std::to_string(bytes) + " ";
  for (const std::byte b : front.first(std::min(front.size(), kFront))) {
    line += kDigits[static_cast<uint8_t>(b) >> 4];
    line += kDigits[static_cast<uint8_t>(b) & 15];
  }
  line += '\n';
  // Beyond the process's limit for files a line would end it by a signal.
  struct stat file {};
  if (::fstat(file_.get(), &file) != 0 ||
      static_cast<uint64_t>(file.st_size) + line.size() > largest_file()) {
    return;
  }
  (void)calls::write(file_.get(), line.data(), line.size());
}

}  // namespace weft::port
