// The examining doctor's end of the TCP connection to one that listens: asks a question, waits for
// its answer.
#pragma once

#include <chrono>

#include "doctor/control.h"

namespace weft::doctor {

using namespace std::chrono_literals;

// How long an answer, and a connection, may take. Small packets pass; who takes longer is gone.
inline constexpr std::chrono::milliseconds kPatience{20'000};

class Consultation {
 public:
  // Connects and introduces itself. Throws kit::Failure, with the kernel's reason where no
  // connection comes about.
  explicit Consultation(const port::Address& to, std::chrono::milliseconds patience);

  nlohmann::json ask(const nlohmann::json& question);

  const std::string& token() const { return token_; }
  const nlohmann::json& greeting() const { return greeting_; }
  port::Address own() const { return control_.stream().local(); }
  int fd() const { return control_.fd(); }

 private:
  Control control_;
  nlohmann::json greeting_;
  std::string token_;
};

// A connection that stands. Throws kit::Failure with the kernel's reason.
port::TcpStream connect_to(const port::Address& to, std::chrono::milliseconds patience);
// The same for who expects that it may not: 0, or the errno.
int try_connect(const port::Address& to, std::chrono::milliseconds patience);
// Until the descriptor is readable; false after `patience`.
bool wait_readable(int fd, std::chrono::milliseconds patience);

}  // namespace weft::doctor
