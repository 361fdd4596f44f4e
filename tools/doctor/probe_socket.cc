#include "doctor/probe_socket.h"

#include "base/adapter_ports.h"

namespace weft::doctor {
namespace {

constexpr size_t kMostAtOnce = 65'536;

}  // namespace

ProbeSocket::ProbeSocket(port::Fd fd)
    : socket_(std::move(fd), kDatagramBuffer), buffer_(kMostAtOnce) {}

ProbeSocket::Sent ProbeSocket::send(const Probe& probe, size_t size, const Remote& to,
                                    bool fragments, uint8_t tos) {
  std::vector<std::byte> bytes = probe.encode(size);
  const IoVec piece{bytes.data(), bytes.size()};
  const port::Address address = socket_.address_of(to.address, to.port, to.interface);
  const auto sent = socket_.send({.to = &address,
                                  .from = to.local,
                                  .interface = to.address.is_link_local() ? to.interface : 0,
                                  .tos = tos,
                                  .fragments = fragments,
                                  .segment = bytes.size(),
                                  .pieces = {&piece, 1}},
                                 segmentation_);
  if (sent.too_big) return Sent::refused;
  return sent.bytes == bytes.size() && sent.error == 0 ? Sent::yes : Sent::no;
}

port::UdpSocket::Received ProbeSocket::read_one() {
  return socket_.receive(buffer_);
}

}  // namespace weft::doctor
