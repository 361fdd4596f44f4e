// The cases of many connections: Writes that take them by turns.
#include <fmt/format.h>

#include <array>

#include "bench/cases.h"

namespace weft::bench {
namespace {

struct Crowd {
  uint32_t connections;
  uint32_t busy;
};
constexpr std::array kCrowds{Crowd{1, 1}, Crowd{8, 8}, Crowd{10, 10}, Crowd{64, 64},
                             Crowd{1000, 10}};

std::string crowd_name(const Crowd& crowd) {
  return crowd.busy == crowd.connections ? std::to_string(crowd.connections)
                                         : fmt::format("{}-of-{}", crowd.busy, crowd.connections);
}

}  // namespace

std::vector<Spec> many_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  for (const uint64_t size : choice.sizes) {
    for (const Crowd& crowd : kCrowds) {
      const std::string rest = fmt::format("{}/{}", size_name(size), crowd_name(crowd));
      const Spec tcp{.name = "tcp/" + rest,
                     .operation = Operation::tcp_stream,
                     .size = size,
                     .connections = crowd.connections,
                     .busy = crowd.busy};
      all.push_back(tcp);
      for (const bool crc : {true, false}) {
        Spec write = tcp;
        write.name = fmt::format("write/{}/{}", rest, crc ? "crc" : "no-crc");
        write.operation = Operation::write;
        write.crc = crc;
        write.wait = choice.bandwidth_wait;
        write.baseline = tcp.name;
        all.push_back(write);
      }
    }
  }
  return all;
}

}  // namespace weft::bench
