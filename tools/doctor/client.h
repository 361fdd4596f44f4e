// The client of a listening doctor: sends a request over the control connection, waits for the
// reply.
#pragma once

#include <chrono>

#include "doctor/control_connection.h"

namespace weft::doctor {

using namespace std::chrono_literals;

// How long a reply, and a connection, may take. Small packets pass, so a peer that takes longer is
// gone.
inline constexpr std::chrono::milliseconds kAnswerTimeout{20'000};

class Client {
 public:
  // Connects and opens a session. Throws kit::Failure, with the kernel's reason if the connection
  // fails.
  explicit Client(const port::Address& to, std::chrono::milliseconds timeout);

  nlohmann::json request(const nlohmann::json& message);

  const std::string& token() const { return token_; }
  const nlohmann::json& greeting() const { return greeting_; }
  port::Address local() const { return control_.stream().local(); }
  int fd() const { return control_.fd(); }

 private:
  ControlConnection control_;
  nlohmann::json greeting_;
  std::string token_;
};

// An established connection. Throws kit::Failure with the kernel's reason.
port::TcpStream connect_to(const port::Address& to, std::chrono::milliseconds timeout);
// Connects and closes: 0, or the errno.
int try_connect(const port::Address& to, std::chrono::milliseconds timeout);
// Waits until the descriptor is readable; false after `timeout`.
bool wait_readable(int fd, std::chrono::milliseconds timeout);

}  // namespace weft::doctor
