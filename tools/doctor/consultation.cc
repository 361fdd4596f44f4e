#include "doctor/consultation.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

namespace weft::doctor {
namespace {

// Until one of `events` holds; false after `patience`. Signals do not end it.
bool wait_for(int fd, short events, std::chrono::milliseconds patience) {
  pollfd watched{fd, events, 0};
  const auto deadline = std::chrono::steady_clock::now() + patience;
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
                 std::chrono::milliseconds patience) {
  auto begun = port::TcpStream::connect({}, to);
  if (!begun.ok()) return begun.error().code;
  stream = std::move(*begun);
  return wait_for(stream.fd(), POLLOUT, patience) ? stream.connect_result() : ETIMEDOUT;
}

}  // namespace

bool wait_readable(int fd, std::chrono::milliseconds patience) {
  return wait_for(fd, POLLIN, patience);
}

int try_connect(const port::Address& to, std::chrono::milliseconds patience) {
  port::TcpStream stream;
  return connect_into(stream, to, patience);
}

port::TcpStream connect_to(const port::Address& to, std::chrono::milliseconds patience) {
  port::TcpStream stream;
  if (const int error = connect_into(stream, to, patience); error != 0) {
    throw kit::Failure(std::strerror(error));
  }
  return stream;
}

Consultation::Consultation(const port::Address& to, std::chrono::milliseconds patience)
    : control_(connect_to(to, patience)) {
  greeting_ = ask({{"weft_doctor", kDoctorVersion}});
  if (!greeting_.contains("token") || !greeting_["token"].is_string()) {
    throw kit::Failure("what listens there is no weft doctor");
  }
  token_ = greeting_["token"];
}

nlohmann::json Consultation::ask(const nlohmann::json& question) {
  if (!control_.send(question)) throw kit::Failure("the connection broke");
  for (bool open = true;; open = control_.fetch()) {
    if (auto answer = control_.next()) {
      if (answer->contains("error"))
        throw kit::Failure(answer->value("error", std::string{"an error"}));
      return *answer;
    }
    // It may have said why.
    if (!open) throw kit::Failure("it closed the connection");
    if (control_.unsent() && !control_.flush()) throw kit::Failure("the connection broke");
    if (!wait_readable(control_.fd(), kPatience)) throw kit::Failure("it does not answer");
  }
}

}  // namespace weft::doctor
