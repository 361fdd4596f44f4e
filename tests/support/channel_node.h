// A host of the simulator with the datagram driver of production, whose socket has channels
// (spec/wdp-rd), at one end of a link.
#pragma once

#include <algorithm>
#include <memory>

#include "drive/datagram_driver.h"
#include "sim/host/ports.h"

namespace weft::test {

inline const port::Address kHostA = port::Address::from_gid(Gid::from_ipv4(0x0a000001), 50000);
inline const port::Address kHostB = port::Address::from_gid(Gid::from_ipv4(0x0a000002), 40000);

inline wdp::Path path_to(const port::Address& to, const port::Address& from) {
  return {.to = {.address = to.gid(), .port = to.port()}, .from = from.gid()};
}

struct ChannelNode : drive::DatagramOwner {
  // `starts`: connections of RC may begin in its channels.
  ChannelNode(sim::Scheduler& scheduler, sim::DatagramEnd& end, const port::Address& own,
              const port::Address& peer, bool starts = false,
              const sim::Runtime::Options& options = {})
      : runtime(scheduler, options) {
    runtime.run([&](engine::Token& t) {
      driver = &drive::DatagramDriver::start(
          t, *this,
          std::make_unique<sim::SimDatagrams>(
              runtime, end, sim::SimDatagrams::Options{.own = own, .peer = peer}));
      driver->enable_channels(own.port(), false, starts);
    });
  }
  wdp::RdChannels& all() const { return driver->wdp_socket().channels(); }
  size_t channels() const { return all().size(); }
  size_t at_rest() const { return all().resting().size(); }
  void open(const wdp::Path& path) {
    runtime.run([&](engine::Token& t) {
      driver->open_channel(t, path);
      driver->settle(t);
    });
  }
  // As a program that closes the device.
  void close() {
    runtime.run([&](engine::Token& t) { driver->close(t); });
  }
  // As Engine::flush_at_exit(), which sleeps until then and looks whether that was put off.
  Time ends(sim::Scheduler& scheduler) const {
    for (Time at; at < runtime.ends_at();) {
      at = runtime.ends_at();
      scheduler.run_for(std::max(at - runtime.now(), Duration{}));
    }
    return runtime.now();
  }

  sim::Runtime runtime;
  drive::DatagramDriver* driver = nullptr;
};

}  // namespace weft::test
