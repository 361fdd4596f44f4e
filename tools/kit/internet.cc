#include "kit/internet.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "kit/failure.h"

namespace weft::kit {

sockaddr_in address_of(const std::string& text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) {
    throw Failure{text + " is no IPv4 address"};
  }
  return address;
}

port::Fd new_socket(const std::string& own_address, int type) {
  port::Fd fd{::socket(AF_INET, type | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) throw system_failure("socket");
  const sockaddr_in own = address_of(own_address, 0);
  if (::bind(fd.get(), generic(own), sizeof own) != 0) throw system_failure("bind " + own_address);
  return fd;
}

uint16_t port_of(const port::Fd& socket) {
  sockaddr_in own{};
  socklen_t length = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    throw system_failure("getsockname");
  }
  return ntohs(own.sin_port);
}

}  // namespace weft::kit
