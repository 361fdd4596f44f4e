// What the two sides tell each other beside the data: JSON documents, one a line, over a TCP
// connection.
//
//   sender                                            receiver
//   {"weft_stream": 1, transport, shape, group,
//    first, fixed, anew, resumed_from,
//    streams, ends}                              ->
//                                                <-   {packets_per_block, ..., ends: [{...}...]}
//   (both connect their data paths)
//   {"connected": true}                          ->
//                                                <-   {"go": true, first: [number...]}
//   ... data ...
//   {"end": [number...], goes_on}                ->
//                                                <-   {"counts": [{...}...]}
//
// "first" is what the sender would like to begin with, and then what it does begin with; with
// "fixed" it gets its wish. "anew" are streams whose count begins anew: what lies between is
// nobody's packets. A receiver that refuses answers {"error": sentence}, and so does one that gives
// a stream to another sender, while data flows. A connection that breaks before "end" means that
// the other side is gone.
#pragma once

#include <netinet/in.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "kit/json_lines.h"
#include "kit/json_words.h"
#include "port/fd.h"
#include "stream/packet.h"

namespace weft::stream {

// By its name. from_json() throws if there is no such format.
inline void to_json(nlohmann::json& json, Format format) {
  json = name_of(format);
}
inline void from_json(const nlohmann::json& json, Format& format) {
  format = format_of(json.get<std::string>());
}

inline constexpr std::array kByteOrders{kit::JsonWord{ByteOrder::big, "be"},
                                        kit::JsonWord{ByteOrder::little, "le"}};
inline void to_json(nlohmann::json& json, ByteOrder order) {
  json = kit::word_of(kByteOrders, order);
}
// Of a Place, where its key is "order".
inline void from_json(const nlohmann::json& json, ByteOrder& order) {
  order = kit::value_of(kByteOrders, json, "order");
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Place, at, bytes, order, shift, step, bits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Shape, format, beamlets, slices, bits, payload,
                                                heap_packets, clock, header, number, stream_number,
                                                address_bits, items, frames_per_second, legacy, vtp)

enum class Transport : uint8_t { tcp, udp, rc, uc };
inline constexpr std::array kTransports{
    kit::JsonWord{Transport::tcp, "tcp"}, kit::JsonWord{Transport::udp, "udp"},
    kit::JsonWord{Transport::rc, "rc"}, kit::JsonWord{Transport::uc, "uc"}};
inline void to_json(nlohmann::json& json, Transport transport) {
  json = kit::word_of(kTransports, transport);
}
inline void from_json(const nlohmann::json& json, Transport& transport) {
  transport = kit::value_of(kTransports, json, "transport");
}

// Nothing is lost or overtaken on its way.
constexpr bool ordered(Transport t) {
  return t == Transport::tcp || t == Transport::rc;
}

inline constexpr int kControlVersion = 1;
inline constexpr uint16_t kControlPort = 4347;
inline constexpr uint16_t kStaticPort = 4348;  // UDP, for circuits

// All functions throw kit::Failure.
class Control {
 public:
  explicit Control(port::Fd fd) : fd_(std::move(fd)) {}
  void send(const nlohmann::json& document);
  // Sleeps until there is one, so many milliseconds at most (-1: for ever).
  nlohmann::json receive(int most_ms);
  // Whether receive() would return, or throw, at once.
  bool readable() const;
  int fd() const { return fd_.get(); }
  // Of the other end, and of this one.
  std::string peer_address() const;
  std::string own_address() const;
  // Lets receive() and send() end when the other machine is gone, or takes nothing.
  void notice_when_gone() const;
  // Lets a receive() in another thread end.
  void shut() const;

 private:
  static constexpr size_t kLongestLine = 4 << 20;  // of thousands of streams

  port::Fd fd_;
  kit::JsonLines came_{kLongestLine};
};

// "ADDRESS" or "ADDRESS:PORT", IPv4 or a name. Throws std::runtime_error for a host that does not
// exist.
sockaddr_in resolve(const std::string& where, uint16_t usual_port);
// Gives up when `over` says so.
Control connect_control(const sockaddr_in& to, const std::string& own_address,
                        const std::function<bool()>& over);

// A socket of this type, bound to an address and a port (0: any).
port::Fd bound_socket(const std::string& address, uint16_t port, int type);
port::Fd listener(const std::string& address, uint16_t port);
uint16_t own_port(const port::Fd& fd);

}  // namespace weft::stream
