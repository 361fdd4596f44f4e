// What is measured: one case of the benchmark, as both of its sides are told it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::bench {

enum class Operation : uint8_t {
  tcp_stream,
  tcp_ping_pong,
  tcp_threads,  // several streams, each with a thread on both sides
  tcp_fpdus,    // messages in FPDUs, by the barest loops that move them
  write,
  read,
  send,
  write_ping_pong,  // Write with immediate
  send_ping_pong,
  udp_stream,
  udp_ping_pong,
  write_immediate,
  chunk,  // Writes into one of two buffers, a Send when it is full, a Send back
  tcp_chunk,
  idle,
  memory,
  unix_stream,  // as tcp_stream, between two processes of one host
  unix_ping_pong,
  line_ping_pong,  // two lines of shared memory, that both sides look at
  futex_ping_pong,
  pull,   // process_vm_readv(2) of the target's memory
  peers,  // small messages that take as many peers as there are connections by turns
  setup,  // so many connections at a time, each used once
};
NLOHMANN_JSON_SERIALIZE_ENUM(Operation, {{Operation::tcp_stream, "tcp_stream"},
                                         {Operation::tcp_ping_pong, "tcp_ping_pong"},
                                         {Operation::tcp_threads, "tcp_threads"},
                                         {Operation::tcp_fpdus, "tcp_fpdus"},
                                         {Operation::write, "write"},
                                         {Operation::read, "read"},
                                         {Operation::send, "send"},
                                         {Operation::write_ping_pong, "write_ping_pong"},
                                         {Operation::send_ping_pong, "send_ping_pong"},
                                         {Operation::udp_stream, "udp_stream"},
                                         {Operation::udp_ping_pong, "udp_ping_pong"},
                                         {Operation::write_immediate, "write_immediate"},
                                         {Operation::chunk, "chunk"},
                                         {Operation::tcp_chunk, "tcp_chunk"},
                                         {Operation::idle, "idle"},
                                         {Operation::memory, "memory"},
                                         {Operation::unix_stream, "unix_stream"},
                                         {Operation::unix_ping_pong, "unix_ping_pong"},
                                         {Operation::line_ping_pong, "line_ping_pong"},
                                         {Operation::futex_ping_pong, "futex_ping_pong"},
                                         {Operation::pull, "pull"},
                                         {Operation::peers, "peers"},
                                         {Operation::setup, "setup"}})

// Of the queue pairs.
enum class Service : uint8_t { rc, uc, ud, rd };
NLOHMANN_JSON_SERIALIZE_ENUM(
    Service, {{Service::rc, "rc"}, {Service::uc, "uc"}, {Service::ud, "ud"}, {Service::rd, "rd"}})

// How a side waits: asleep on its socket or completion channel, or looking all the time.
enum class Wait : uint8_t { event, poll };
NLOHMANN_JSON_SERIALIZE_ENUM(Wait, {{Wait::event, "event"}, {Wait::poll, "poll"}})

// Which figures count, and where the case stands in the report.
enum class Group : uint8_t { bandwidth, rate, latency, rest };
NLOHMANN_JSON_SERIALIZE_ENUM(Group, {{Group::bandwidth, "bandwidth"},
                                     {Group::rate, "rate"},
                                     {Group::latency, "latency"},
                                     {Group::rest, "rest"}})

// Of a message of udp_stream; its first byte asks.
inline constexpr uint64_t kUdpHeader = 8;

struct Spec {
  std::string name;
  Group group = Group::bandwidth;
  Operation operation = Operation::write;
  uint64_t size = 0;  // bytes of a message, or of a chunk
  bool crc = true;
  Wait wait = Wait::event;
  uint32_t depth = 64;  // work requests in flight
  uint32_t list = 1;    // work requests of one ibv_post_send
  uint32_t connections = 1;
  uint32_t busy = 1;     // of the connections of a stream: those that carry messages
  std::string baseline;  // name of the case of raw sockets that it is compared with, or empty
  Service service = Service::rc;
  // Of streams that may lose messages:
  uint64_t window = 0;  // bytes under way that the target's program has not answered; 0: any number
  double gbps = 0;      // offered; 0: as fast as it goes
  double loss = 0;      // share of the packets that the network drops, each way
  double delay_ms = 0;  // that a packet takes through the network, each way
  double link_mbps = 0;    // that the network carries each way; 0: any number
  std::string fault;       // WEFT_FAULT of both sides
  bool same_host = false;  // RC through memory that both sides share, where they can
  bool channels = false;   // RC by datagrams, UD without loss (WEFT_RC=udp, WEFT_UD=reliable)
  bool inside = false;     // the target's program waits in ibv_get_cq_event(3), and nowhere else
  std::string sockets;     // of TCP: the way by which they go (sdp_modes.h); empty: the kernel's
  uint64_t piece = 0;  // bytes of each Write, or send(2), of a chunk; its last one may have less
  // Such streams at a time, each between two processes of its own, beside as many of plain TCP. 0:
  // one, alone.
  uint32_t flows = 0;
  uint64_t memory = 0;  // bytes that messages come from, and go to; 0: few, which stay in the cache
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spec, name, group, operation, size, crc, wait, depth, list,
                                   connections, busy, baseline, service, window, gbps, loss,
                                   delay_ms, link_mbps, fault, same_host, channels, inside, sockets,
                                   piece, flows, memory)

// Messages for which a region of such a case has room; 0: those that a Region has by itself.
inline uint64_t slots_of(const Spec& s) {
  return s.memory / s.size;
}

inline bool is_tcp(Operation o) {
  return o == Operation::tcp_stream || o == Operation::tcp_ping_pong || o == Operation::tcp_fpdus ||
         o == Operation::tcp_threads || o == Operation::tcp_chunk;
}
inline bool is_udp(Operation o) {
  return o == Operation::udp_stream || o == Operation::udp_ping_pong;
}
inline bool is_ping_pong(Operation o) {
  switch (o) {
    case Operation::tcp_ping_pong:
    case Operation::udp_ping_pong:
    case Operation::unix_ping_pong:
    case Operation::line_ping_pong:
    case Operation::futex_ping_pong:
    case Operation::write_ping_pong:
    case Operation::send_ping_pong:
      return true;
    default:
      return false;
  }
}
// The target's memory is where the data comes from.
inline bool is_fetched(Operation o) {
  return o == Operation::read || o == Operation::pull;
}
// A stream that is measured as one whose messages may be lost on the way. UD by channels loses
// none; but one by one its messages go by the same program as those of plain UD, so that the two
// compare.
inline bool may_lose(const Spec& s) {
  if (s.operation == Operation::udp_stream) return true;
  if (s.operation == Operation::peers) return false;
  if (is_ping_pong(s.operation)) return false;
  return s.service == Service::uc || (s.service == Service::ud && s.list == 1);
}

// 65536 is "64K", 1048576 "1M", 100 "100".
std::string size_name(uint64_t bytes);

}  // namespace weft::bench
