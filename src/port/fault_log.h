// Which datagrams were lost on purpose (option fault_log, docs/faults.md): a line for each in a
// file, so that a test knows what its program has to miss.
//
//   out 192.0.2.7:4791 7872 d1140100..     way, the other end, bytes, the first 64 of these
#pragma once

#include <string>

#include "base/bytes.h"
#include "port/address.h"
#include "port/fd.h"

namespace weft::port {

class FaultLog {
 public:
  static constexpr size_t kFront = 64;  // bytes: WDP's header and more

  // That of this process, nullptr when the option is not set. Never destroyed. Any thread.
  static FaultLog* of_process();
  // Writes behind what the file has (port/own_file.h). One that cannot be opened is warned of.
  explicit FaultLog(const std::string& path);

  // `front`: no more than the first kFront bytes are used. Any thread, and several processes: a
  // line is one write.
  void lost(const char* way, const Address& peer, size_t bytes, Bytes front);

 private:
  Fd file_;
};

}  // namespace weft::port
