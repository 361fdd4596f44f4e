#include "doctor/session.h"

#include <fmt/format.h>

#include "kit/json_numbers.h"

namespace weft::doctor {
namespace {

constexpr size_t kMostIdsTold = 64;
constexpr uint32_t kMostTimes = 256;
constexpr uint32_t kPingsToPeer = 5;

}  // namespace

std::string in_hex(uint64_t number) {
  return fmt::format("{:016x}", number);
}

void Session::handle(const ProbeSocket::Received& datagram, ProbeSocket& socket) {
  const Probe& p = datagram.probe;
  if (p.kind == Probe::Kind::ping) {
    if (pings_ >= kMostPings) return;
    ++pings_;
    remote_ = datagram.from;
    socket_ = &socket;
    const Probe reply{.kind = Probe::Kind::ping_reply,
                      .token = token_,
                      .cookie = cookie_,
                      .round = p.round,
                      .id = p.id,
                      .seen = remote_.address,
                      .seen_port = remote_.port};
    (void)send_one(socket, reply, kProbeHeader, remote_, false, 0);
    return;
  }
  if (p.kind != Probe::Kind::probe || p.round < round_ || p.id >= kMostIds) return;
  if (p.round > round_) {
    round_ = p.round;
    count_ = 0;
    ids_.reset();
  }
  if (!ids_[p.id]) ++count_;
  ids_.set(p.id);
  tos_ = datagram.tos;
}

nlohmann::json Session::received() const {
  auto ids = nlohmann::json::array();
  for (size_t id = 0; id < kMostIds && ids.size() < kMostIdsTold; ++id) {
    if (ids_[id]) ids.push_back(id);
  }
  return {{"round", round_}, {"count", count_}, {"ids", ids}, {"tos", tos_}, {"hails", pings_}};
}

ProbeSocket::Sent Session::send_one(ProbeSocket& socket, const Probe& probe, size_t size,
                                    const ProbeSocket::Remote& to, bool fragments, uint8_t tos) {
  if (sent_ + size > kMostBytes) return ProbeSocket::Sent::no;
  const ProbeSocket::Sent sent = socket.send(probe, size, to, fragments, tos);
  if (sent == ProbeSocket::Sent::yes) sent_ += size;
  return sent;
}

nlohmann::json Session::send(const nlohmann::json& request) {
  if (socket_ == nullptr || request.at("cookie").get<std::string>() != in_hex(cookie_)) {
    throw kit::Failure("the cookie was not sent to this address");
  }
  const auto round = kit::number_at<uint32_t>(request, "round");
  const auto times = static_cast<uint32_t>(kit::number_or(request, "times", kMostTimes, 1));
  const auto tos = static_cast<uint8_t>(kit::number_or(request, "tos", UINT8_MAX, 0));
  const bool fragments = request.value("fragments", false);
  const auto& sizes = request.at("sizes");
  if (!sizes.is_array() || sizes.size() > kMostSizes) throw kit::Failure("too much is asked for");
  uint32_t sent = 0;
  uint32_t id = 0;
  auto refused = nlohmann::json::array();
  for (const auto& entry : sizes) {
    const size_t size = kit::number_from(entry, "sizes", kMostDatagram);
    if (size < kProbeHeader) throw kit::Failure("a size that no datagram has");
    for (uint32_t i = 0; i < times; ++i, ++id) {
      const Probe probe{.token = token_, .round = round, .id = id};
      const ProbeSocket::Sent outcome = send_one(*socket_, probe, size, remote_, fragments, tos);
      if (outcome == ProbeSocket::Sent::yes) ++sent;
      if (outcome == ProbeSocket::Sent::refused && i == 0) refused.push_back(size);
    }
  }
  return {{"sent", sent}, {"refused", refused}};
}

nlohmann::json Session::reply_to(const nlohmann::json& request, const port::TcpStream& stream,
                                 ProbeSocket& socket) {
  const auto ask = request.at("ask").get<std::string>();
  if (ask == "heard") return received();
  if (ask == "send") return send(request);
  if (ask == "mtu") return {{"mtu", mtu_towards(stream.peer())}};
  if (ask != "hail") throw kit::Failure("an unknown request");
  const port::Address peer = stream.peer();
  const ProbeSocket::Remote to{.address = peer.gid(),
                               .port = kit::number_at<uint16_t>(request, "port"),
                               .interface = peer.scope(),
                               .local = stream.local().gid()};
  uint32_t sent = 0;
  for (uint32_t i = 0; i < kPingsToPeer; ++i) {
    const Probe probe{.kind = Probe::Kind::ping, .token = token_, .id = i};
    if (send_one(socket, probe, kProbeHeader, to, false, 0) == ProbeSocket::Sent::yes) ++sent;
  }
  return {{"sent", sent}};
}

}  // namespace weft::doctor
