#include "doctor/client.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

namespace weft::doctor {
namespace {

// Waits until one of `events` holds; false after `timeout`. Signals do not end it.
bool wait_for(int fd, short events, std::chrono::milliseconds timeout) {
  pollfd watched{fd, events, 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
            .count();
    const int ready = poll(&watched, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

int connect_into(port::TcpStream& stream, const port::Address& to,
                 std::chrono::milliseconds timeout) {
  auto begun = port::TcpStream::connect({}, to);
  if (!begun.ok()) return begun.error().code;
  stream = std::move(*begun);
  return wait_for(stream.fd(), POLLOUT, timeout) ? stream.connect_result() : ETIMEDOUT;
}

}  // namespace

bool wait_readable(int fd, std::chrono::milliseconds timeout) {
  return wait_for(fd, POLLIN, timeout);
}

int try_connect(const port::Address& to, std::chrono::milliseconds timeout) {
  port::TcpStream stream;
  return connect_into(stream, to, timeout);
}

port::TcpStream connect_to(const port::Address& to, std::chrono::milliseconds timeout) {
  port::TcpStream stream;
  if (const int error = connect_into(stream, to, timeout); error != 0) {
    throw kit::Failure(std::strerror(error));
  }
  return stream;
}

Client::Client(const port::Address& to, std::chrono::milliseconds timeout)
    : control_(connect_to(to, timeout)) {
  greeting_ = request({{"weft_doctor", kDoctorVersion}});
  if (!greeting_.contains("token") || !greeting_["token"].is_string()) {
    throw kit::Failure("what listens there is no weft doctor");
  }
  token_ = greeting_["token"];
}

nlohmann::json Client::request(const nlohmann::json& message) {
  if (!control_.send(message)) throw kit::Failure("the connection broke");
  for (bool open = true;; open = control_.fetch()) {
    if (auto reply = control_.next()) {
      if (reply->contains("error"))
        throw kit::Failure(reply->value("error", std::string{"an error"}));
      return *reply;
    }
    // The reason may stand in the last reply.
    if (!open) throw kit::Failure("it closed the connection");
    if (control_.unsent() && !control_.flush()) throw kit::Failure("the connection broke");
    if (!wait_readable(control_.fd(), kAnswerTimeout)) throw kit::Failure("it does not answer");
  }
}

}  // namespace weft::doctor
