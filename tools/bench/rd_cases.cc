// The cases of what goes by channels: RC over UDP, reliable UD and queue pairs of type RD, beside
// what they are compared with.
#include <fmt/format.h>

#include <algorithm>

#include "bench/cases.h"

namespace weft::bench {
namespace {

constexpr uint64_t kWindow = 1 << 20;      // of plain UDP and UD, so that they lose little
constexpr uint64_t kUsualDatagram = 8192;  // of programs that use plain UDP for bulk data
constexpr uint64_t kUdMessage = 1024;      // no interface is too narrow for it
constexpr uint64_t kNeighbour = 16384;     // of streams that share a link
constexpr uint64_t kSmall = 64;
constexpr uint32_t kList = 64;  // work requests of a post list

Spec rc_write(const CaseChoice& choice, uint64_t size, bool channels, bool crc) {
  return {.name = fmt::format("rc-{}/{}{}", channels ? "udp" : "tcp", size_name(size),
                              crc ? "/crc" : ""),
          .size = size,
          .crc = crc,
          .wait = choice.bandwidth_wait,
          .baseline = fmt::format("tcp/{}", size_name(size)),
          .channels = channels};
}

Spec rd_write(const CaseChoice& choice, uint64_t size) {
  return {.name = fmt::format("rd/{}", size_name(size)),
          .size = size,
          .crc = false,
          .wait = choice.bandwidth_wait,
          .baseline = fmt::format("tcp/{}", size_name(size)),
          .service = Service::rd};
}

// Faults are weft's own: plain sockets have none, and RC over TCP no such ones.
void add_bad_network(std::vector<Spec>& all, const CaseChoice& choice, uint64_t size, double ms,
                     double percent) {
  for (Spec spec : {rc_write(choice, size, true, false), rd_write(choice, size)}) {
    if (ms != 0) {
      spec.name += fmt::format("/delay-{:g}ms", ms);
      spec.fault = fmt::format("delay:{:.0f}us,", ms * 1000);
    }
    if (percent != 0) {
      spec.name += fmt::format("/loss-{:g}%", percent);
      spec.fault += fmt::format("loss:{:g},", percent / 100);
    }
    spec.fault += "way:out,seed:1";
    all.push_back(spec);
  }
}

// Streams on a link that is the same for all of them.
void add_link(std::vector<Spec>& all, const CaseChoice& choice, uint64_t size, double ms,
              double percent) {
  std::string shape;
  if (choice.link_mbps != 0) shape += fmt::format("/{:g}Mb", choice.link_mbps);
  if (ms != 0) shape += fmt::format("/delay-{:g}ms", ms);
  if (percent != 0) shape += fmt::format("/loss-{:g}%", percent);
  const Spec tcp{.name = fmt::format("tcp/{}", size_name(size)),
                 .operation = Operation::tcp_stream,
                 .size = size};
  const std::string baseline = tcp.name + shape;
  for (Spec spec : {tcp, rc_write(choice, size, false, false), rc_write(choice, size, true, false),
                    rd_write(choice, size)}) {
    spec.name += shape;
    if (!spec.baseline.empty()) spec.baseline = baseline;
    spec.loss = percent / 100;
    spec.delay_ms = ms;
    spec.link_mbps = choice.link_mbps;
    all.push_back(spec);
  }
}

// Bytes of all streams that are on the way and in the queue of a link when that is full, as
// Link::of() has it.
double most_under_way(double mbps, double ms) {
  const double queue_ms = std::max(4 * ms, 20.0);
  return mbps * 1e6 / 8 * (2 * ms + queue_ms) * 1e-3;
}

// What a stream has in flight is several times its share: no less than it can use, and no more than
// passes soon when the time is over. Beside others plain TCP shows what TCP does to itself.
void add_neighbours(std::vector<Spec>& all, const CaseChoice& choice, double ms) {
  for (const uint32_t flows : choice.beside) {
    const double share = most_under_way(choice.link_mbps, ms) / (2.0 * flows);
    const auto depth = static_cast<uint32_t>(4 * share / kNeighbour);
    for (Spec spec : {Spec{.name = fmt::format("tcp/{}", size_name(kNeighbour)),
                     .operation = Operation::tcp_stream,
                     .size = kNeighbour},
                      rc_write(choice, kNeighbour, true, false)}) {
      spec.name += fmt::format("/{:g}Mb", choice.link_mbps);
      if (ms != 0) spec.name += fmt::format("/delay-{:g}ms", ms);
      spec.name += fmt::format("/beside-{}", flows);
      spec.baseline.clear();
      spec.depth = std::clamp<uint32_t>(depth, 4, 64);
      spec.delay_ms = ms;
      spec.link_mbps = choice.link_mbps;
      spec.flows = flows;
      all.push_back(spec);
    }
  }
}

void add_links(std::vector<Spec>& all, const CaseChoice& choice) {
  std::vector<double> delays = choice.delays;
  if (delays.empty()) delays.push_back(0);
  if (!choice.beside.empty()) {
    for (const double ms : delays) add_neighbours(all, choice, ms);
    return;
  }
  std::vector<double> losses = choice.losses;
  if (std::find(losses.begin(), losses.end(), 0) == losses.end()) losses.insert(losses.begin(), 0);
  for (const uint64_t size : choice.sizes) {
    for (const double ms : delays) {
      for (const double percent : losses) add_link(all, choice, size, ms, percent);
    }
  }
}

void add_bandwidth(std::vector<Spec>& all, const CaseChoice& choice) {
  for (const uint64_t size : choice.sizes) {
    all.push_back({.name = fmt::format("tcp/{}", size_name(size)),
                   .operation = Operation::tcp_stream,
                   .size = size});
    all.push_back({.name = fmt::format("uc/{}", size_name(size)),
                   .size = size,
                   .crc = false,
                   .wait = choice.bandwidth_wait,
                   .baseline = all.back().name,
                   .service = Service::uc});
    for (const bool crc : {false, true}) {
      for (const bool channels : {false, true}) {
        all.push_back(rc_write(choice, size, channels, crc));
      }
    }
    all.push_back(rd_write(choice, size));
    for (const double percent : choice.losses) {
      if (percent != 0) add_bad_network(all, choice, size, 0, percent);
    }
    for (const double ms : choice.delays) {
      if (ms == 0) continue;
      add_bad_network(all, choice, size, ms, 0);
      for (const double percent : choice.losses) {
        if (percent != 0) add_bad_network(all, choice, size, ms, percent);
      }
    }
  }
}

void add_datagrams(std::vector<Spec>& all, const CaseChoice& choice) {
  const auto udp = [&](uint64_t size) {
    all.push_back({.name = fmt::format("udp/{}", size_name(size)),
                   .operation = Operation::udp_stream,
                   .size = size,
                   .window = kWindow});
  };
  udp(kUsualDatagram);
  udp(kUdMessage);
  Spec ud{.name = fmt::format("ud/{}", size_name(kUdMessage)),
          .operation = Operation::send,
          .size = kUdMessage,
          .crc = false,
          .wait = choice.bandwidth_wait,
          .baseline = all.back().name,
          .service = Service::ud,
          .window = kWindow};
  all.push_back(ud);
  // It has a window of its own.
  ud.name += "/reliable";
  ud.window = 0;
  ud.channels = true;
  all.push_back(ud);
}

// Plain UD has nothing that would hold its lists back, and loses most of them.
void add_rates(std::vector<Spec>& all) {
  Spec spec{
      .group = Group::rate, .size = kSmall, .wait = Wait::poll, .depth = 16 * kList, .list = kList};
  for (const bool channels : {false, true}) {
    spec.name = fmt::format("rc-{}-list/{}", channels ? "udp" : "tcp", kSmall);
    spec.channels = channels;
    all.push_back(spec);
  }
  spec.name = fmt::format("rd-list/{}", kSmall);
  spec.service = Service::rd;
  spec.channels = false;
  all.push_back(spec);
  spec.channels = true;
  spec.name = fmt::format("ud-list/{}/reliable", kSmall);
  spec.operation = Operation::send;
  spec.service = Service::ud;
  all.push_back(spec);
}

void add_peers(std::vector<Spec>& all, const CaseChoice& choice) {
  for (const uint32_t peers : choice.peers) {
    const auto add = [&](const char* name, Service service, bool channels) {
      all.push_back({.name = fmt::format("{}/{}/peers-{}", name, kSmall, peers),
                     .group = Group::rate,
                     .operation = Operation::peers,
                     .size = kSmall,
                     .crc = false,
                     .wait = Wait::poll,
                     .depth = 16,
                     .connections = peers,
                     .busy = peers,
                     .service = service,
                     .channels = channels});
    };
    add("ud", Service::ud, false);
    add("ud-reliable", Service::ud, true);
    add("rc-tcp", Service::rc, false);
    add("rc-udp", Service::rc, true);
  }
}

void add_setup(std::vector<Spec>& all, const CaseChoice& choice) {
  for (const uint32_t count : choice.setup) {
    const std::string tcp = fmt::format("rc-tcp/setup-{}", count);
    for (const bool channels : {false, true}) {
      all.push_back({.name = channels ? fmt::format("rc-udp/setup-{}", count) : tcp,
                     .group = Group::rate,
                     .operation = Operation::setup,
                     .size = kSmall,
                     .wait = Wait::poll,
                     .connections = count,
                     .baseline = channels ? tcp : "",
                     .channels = channels});
    }
  }
}

void add_latencies(std::vector<Spec>& all) {
  const std::string udp = fmt::format("udp-ping-pong/{}", kSmall);
  const auto add = [&](std::string name, Operation operation, Service service, bool channels) {
    all.push_back({.name = std::move(name),
                   .group = Group::latency,
                   .operation = operation,
                   .size = kSmall,
                   .wait = Wait::poll,
                   .baseline = operation == Operation::udp_ping_pong ? "" : udp,
                   .service = service,
                   .channels = channels});
  };
  const auto sends = [&](const char* word, Service service, bool channels) {
    add(fmt::format("{}-ping-pong/{}{}", word, kSmall,
                    channels && service == Service::ud ? "/reliable" : ""),
        Operation::send_ping_pong, service, channels);
  };
  add(udp, Operation::udp_ping_pong, Service::rc, false);
  add(fmt::format("tcp-ping-pong/{}", kSmall), Operation::tcp_ping_pong, Service::rc, false);
  sends("rc-tcp", Service::rc, false);
  sends("rc-udp", Service::rc, true);
  sends("ud", Service::ud, false);
  sends("ud", Service::ud, true);
  sends("rd", Service::rd, false);
}

}  // namespace

std::vector<Spec> rd_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  if (choice.link) {
    add_links(all, choice);
    return all;
  }
  if (!choice.peers.empty()) {
    add_peers(all, choice);
    return all;
  }
  if (!choice.setup.empty()) {
    add_setup(all, choice);
    return all;
  }
  add_bandwidth(all, choice);
  add_datagrams(all, choice);
  add_rates(all);
  add_latencies(all);
  return all;
}

}  // namespace weft::bench
