// What is measured: one case of the benchmark, as both of its sides are told it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::bench {

enum class Operation : uint8_t {
  tcp_stream,
  tcp_ping_pong,
  write,
  read,
  send,
  write_ping_pong,  // Write with immediate
  send_ping_pong,
  idle,
  memory,
};
NLOHMANN_JSON_SERIALIZE_ENUM(Operation, {{Operation::tcp_stream, "tcp_stream"},
                                         {Operation::tcp_ping_pong, "tcp_ping_pong"},
                                         {Operation::write, "write"},
                                         {Operation::read, "read"},
                                         {Operation::send, "send"},
                                         {Operation::write_ping_pong, "write_ping_pong"},
                                         {Operation::send_ping_pong, "send_ping_pong"},
                                         {Operation::idle, "idle"},
                                         {Operation::memory, "memory"}})

// How a side waits: asleep on its socket or completion channel, or looking all the time.
enum class Wait : uint8_t { event, poll };
NLOHMANN_JSON_SERIALIZE_ENUM(Wait, {{Wait::event, "event"}, {Wait::poll, "poll"}})

// Which figures count, and where the case stands in the report.
enum class Group : uint8_t { bandwidth, rate, latency, rest };
NLOHMANN_JSON_SERIALIZE_ENUM(Group, {{Group::bandwidth, "bandwidth"},
                                     {Group::rate, "rate"},
                                     {Group::latency, "latency"},
                                     {Group::rest, "rest"}})

struct Spec {
  std::string name;
  Group group = Group::bandwidth;
  Operation operation = Operation::write;
  uint64_t size = 0;  // bytes of a message
  bool crc = true;
  Wait wait = Wait::event;
  uint32_t depth = 64;  // work requests in flight
  uint32_t list = 1;    // work requests of one ibv_post_send
  uint32_t connections = 1;
  std::string baseline;  // name of the case of raw TCP that it is compared with, or empty
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spec, name, group, operation, size, crc, wait, depth, list,
                                   connections, baseline)

inline bool is_tcp(Operation o) {
  return o == Operation::tcp_stream || o == Operation::tcp_ping_pong;
}
inline bool is_ping_pong(Operation o) {
  return o == Operation::tcp_ping_pong || o == Operation::write_ping_pong ||
         o == Operation::send_ping_pong;
}

// 65536 is "64K", 1048576 "1M", 100 "100".
std::string size_name(uint64_t bytes);

}  // namespace weft::bench
