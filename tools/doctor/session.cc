#include "doctor/session.h"

#include <fmt/format.h>

#include "kit/json_numbers.h"

namespace weft::doctor {
namespace {

constexpr size_t kMostIdsTold = 64;
constexpr uint32_t kMostTimes = 256;
constexpr uint32_t kHailsToPeer = 5;

}  // namespace

std::string in_hex(uint64_t number) {
  return fmt::format("{:016x}", number);
}

void Session::came(const UdpEnd::Came& datagram, UdpEnd& door) {
  const Probe& p = datagram.probe;
  if (p.kind == Probe::Kind::hail) {
    if (hails_ >= kMostHails) return;
    ++hails_;
    from_ = datagram.from;
    door_ = &door;
    const Probe answer{.kind = Probe::Kind::hail_answer,
                       .token = token_,
                       .cookie = cookie_,
                       .round = p.round,
                       .id = p.id,
                       .seen = from_.address,
                       .seen_port = from_.port};
    (void)send_one(door, answer, kProbeHeader, from_, false, 0);
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

nlohmann::json Session::heard() const {
  auto ids = nlohmann::json::array();
  for (size_t id = 0; id < kMostIds && ids.size() < kMostIdsTold; ++id) {
    if (ids_[id]) ids.push_back(id);
  }
  return {{"round", round_}, {"count", count_}, {"ids", ids}, {"tos", tos_}, {"hails", hails_}};
}

UdpEnd::Sent Session::send_one(UdpEnd& door, const Probe& probe, size_t size, const UdpEnd::To& to,
                               bool fragments, uint8_t tos) {
  if (sent_ + size > kMostBytes) return UdpEnd::Sent::no;
  const UdpEnd::Sent sent = door.send(probe, size, to, fragments, tos);
  if (sent == UdpEnd::Sent::yes) sent_ += size;
  return sent;
}

nlohmann::json Session::send(const nlohmann::json& question) {
  if (door_ == nullptr || question.at("cookie").get<std::string>() != in_hex(cookie_)) {
    throw kit::Failure("the cookie was not sent to this address");
  }
  const auto round = kit::number_at<uint32_t>(question, "round");
  const auto times = static_cast<uint32_t>(kit::number_or(question, "times", kMostTimes, 1));
  const auto tos = static_cast<uint8_t>(kit::number_or(question, "tos", UINT8_MAX, 0));
  const bool fragments = question.value("fragments", false);
  const auto& sizes = question.at("sizes");
  if (!sizes.is_array() || sizes.size() > kMostSizes) throw kit::Failure("too much is asked for");
  uint32_t sent = 0;
  uint32_t id = 0;
  auto refused = nlohmann::json::array();
  for (const auto& entry : sizes) {
    const size_t size = kit::number_from(entry, "sizes", kMostDatagram);
    if (size < kProbeHeader) throw kit::Failure("a size that no datagram has");
    for (uint32_t i = 0; i < times; ++i, ++id) {
      const Probe probe{.token = token_, .round = round, .id = id};
      const UdpEnd::Sent outcome = send_one(*door_, probe, size, from_, fragments, tos);
      if (outcome == UdpEnd::Sent::yes) ++sent;
      if (outcome == UdpEnd::Sent::refused && i == 0) refused.push_back(size);
    }
  }
  return {{"sent", sent}, {"refused", refused}};
}

nlohmann::json Session::answer(const nlohmann::json& question, const port::TcpStream& stream,
                               UdpEnd& door) {
  const auto ask = question.at("ask").get<std::string>();
  if (ask == "heard") return heard();
  if (ask == "send") return send(question);
  if (ask == "mtu") return {{"mtu", mtu_towards(stream.peer())}};
  if (ask != "hail") throw kit::Failure("a question that nobody knows");
  const port::Address peer = stream.peer();
  const UdpEnd::To to{.address = peer.gid(),
                      .port = kit::number_at<uint16_t>(question, "port"),
                      .interface = peer.scope(),
                      .from = stream.local().gid()};
  uint32_t sent = 0;
  for (uint32_t i = 0; i < kHailsToPeer; ++i) {
    const Probe probe{.kind = Probe::Kind::hail, .token = token_, .id = i};
    if (send_one(door, probe, kProbeHeader, to, false, 0) == UdpEnd::Sent::yes) ++sent;
  }
  return {{"sent", sent}};
}

}  // namespace weft::doctor
