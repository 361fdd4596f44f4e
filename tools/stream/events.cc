#include "stream/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weft::stream {
namespace {

using nlohmann::json;

uint64_t number(const json& event, const char* name) {
  return event.value(name, uint64_t{0});
}
std::string text(const json& event, const char* name) {
  return event.value(name, std::string{});
}
std::string streams_of(const json& event) {
  return streams_text(event.value("stream_numbers", std::vector<uint32_t>{}));
}
// "board 1, clock 200, station 3"
std::string origin_text(const json& origin) {
  std::string list;
  for (const auto& [name, value] : origin.items()) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", name, value.dump());
  }
  return list;
}

std::string listening(const json& e) {
  return fmt::format("listening for senders on TCP port {}", number(e, "port"));
}
std::string circuit(const json& e) {
  return fmt::format(
      "stream {} takes a circuit from {}: UDP port {}, token {:08x}, STag {:08x}, slots of {} "
      "bytes, {} packets a block, {} blocks of {} bytes",
      number(e, "stream"), text(e, "from"), number(e, "udp_port"), number(e, "token"),
      number(e, "stag"), number(e, "slot_bytes"), number(e, "packets_per_block"),
      number(e, "blocks"), number(e, "block_bytes"));
}
std::string waiting(const json& e) {
  return fmt::format("{}. Trying again", text(e, "reason"));
}
std::string connected(const json& e) {
  if (e.contains("receiver")) {
    return fmt::format("connected to the receiver at {}: {}", text(e, "receiver"), streams_of(e));
  }
  return fmt::format("a sender at {} has connected: {}", text(e, "sender"), streams_of(e));
}
std::string ended(const json& e) {
  return fmt::format("the sender at {} has ended: {}", text(e, "sender"), streams_of(e));
}
std::string lost(const json& e) {
  if (e.contains("sender")) {
    return fmt::format("lost the sender at {}, which said no goodbye: {}", text(e, "sender"),
                       streams_of(e));
  }
  return fmt::format("lost the receiver: {}", text(e, "reason"));
}
std::string refused(const json& e) {
  return fmt::format("refused a sender at {}: {}", text(e, "sender"), text(e, "reason"));
}
std::string unaccepted(const json& e) {
  return fmt::format("a sender waits, and its connection cannot be accepted: {}. Trying again",
                     text(e, "reason"));
}
std::string gap(const json& e) {
  return fmt::format("stream {}: a gap of {} packets, {} to {}. Its sender had sent {} of them",
                     number(e, "stream"), number(e, "packets"), number(e, "from"),
                     std::max<uint64_t>(number(e, "to"), 1) - 1, number(e, "sent"));
}
std::string foreign(const json& e) {
  const std::string is = origin_text(e.value("stream_is", json::object()));
  return fmt::format("stream {}: packets of another sender are not taken ({}{})",
                     number(e, "stream"), origin_text(e.value("from", json::object())),
                     is.empty() ? "" : "; the stream has " + is);
}
std::string learned(const json& e) {
  return fmt::format("stream {}: its packets are read as with --number {}", number(e, "stream"),
                     text(e, "number"));
}
std::string jump(const json& e) {
  return fmt::format("stream {}: the count begins anew, at {} instead of {}", number(e, "stream"),
                     number(e, "to"), number(e, "from"));
}
std::string invalid(const json& e) {
  return fmt::format("stream {}: none of {} packets was valid: {} (header {})", number(e, "stream"),
                     number(e, "packets"), text(e, "reason"), text(e, "header"));
}
std::string file(const json& e) {
  return fmt::format("{} is complete: {} bytes, {} packets, {} missing", text(e, "path"),
                     number(e, "bytes"), number(e, "packets"), number(e, "missing"));
}

}  // namespace

std::string sentence_of(const json& event) {
  using Teller = std::string (*)(const json&);
  static const std::map<std::string, Teller> kTellers{
      {"listening", listening}, {"circuit", circuit},
      {"waiting", waiting},     {"connected", connected},
      {"ended", ended},         {"lost", lost},
      {"refused", refused},     {"gap", gap},
      {"file", file},           {"foreign", foreign},
      {"jump", jump},           {"invalid", invalid},
      {"learned", learned},     {"unaccepted", unaccepted}};
  const std::string name = text(event, "event");
  if (const auto teller = kTellers.find(name); teller != kTellers.end()) {
    return teller->second(event);
  }
  std::string sentence = name + ":";
  for (const auto& [key, value] : event.items()) {
    if (key != "event") sentence += fmt::format(" {} {}", key, value.dump());
  }
  return sentence;
}

std::string streams_text(const std::vector<uint32_t>& streams) {
  if (streams.empty()) return "no stream";
  if (streams.size() == 1) return fmt::format("stream {}", streams[0]);
  const bool in_order =
      std::adjacent_find(streams.begin(), streams.end(),
                         [](uint32_t a, uint32_t b) { return b != a + 1; }) == streams.end();
  if (in_order) return fmt::format("streams {} to {}", streams.front(), streams.back());
  std::string list;
  for (size_t i = 0; i + 1 < streams.size(); ++i) {
    list += fmt::format("{}{}", i == 0 ? "" : ", ", streams[i]);
  }
  return fmt::format("streams {} and {}", list, streams.back());
}

}  // namespace weft::stream
