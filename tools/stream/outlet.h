// The sender's end of a transport. Packets are built in the outlet's own slots and leave from
// there.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "stream/control.h"

namespace weft::stream {

struct OutletOptions {
  Transport transport = Transport::uc;
  Shape shape;
  uint32_t streams = 1;
  uint32_t group = 1;       // packets of a Write
  std::string library;      // the libibverbs
  std::string own_address;  // to send from; empty: as routes say
  std::string address;      // of the receiver
  std::string interface;    // multicast leaves by that of this address; empty: as routes say
  int hops = 1;             // that multicast passes
};

// All functions throw kit::Failure; one that has thrown is of no more use. Streams are counted
// from 0 among those of this sender.
class Outlet {
 public:
  Outlet() = default;
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  virtual ~Outlet() = default;

  // What the receiver has to know of each stream.
  virtual nlohmann::json ends() = 0;
  // `answer`: what the receiver told.
  virtual void connect(const nlohmann::json& answer) = 0;

  // How many packets from `number` on can be built and sent now, 0 to `most`. slot() and send() of
  // these follow.
  virtual uint32_t room(uint32_t stream, uint64_t number, uint32_t most) = 0;
  // Where packet `number` is to be built.
  virtual std::byte* slot(uint32_t stream, uint64_t number) = 0;
  // Packets that are built leave, in one Write where Writes carry several. `last`: no others
  // follow.
  virtual void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) = 0;
  // Nothing more will be sent, whether or not send() knew.
  virtual void end() {}
  // Does what is left to do of all that was sent; true, after the last ones or end(), when nothing
  // is.
  virtual bool progress() = 0;
  // Whether all that has left is at the receiver's host, where the transport can tell; true where
  // it cannot.
  virtual bool arrived() { return true; }
};

std::unique_ptr<Outlet> make_tcp_outlet(const OutletOptions& options);
std::unique_ptr<Outlet> make_udp_outlet(const OutletOptions& options);
std::unique_ptr<Outlet> make_verbs_outlet(const OutletOptions& options);

// Slots for the packets of each stream, which take them by turns.
class Staging {
 public:
  // A power of two, and enough for two of the largest Writes.
  static constexpr uint32_t kSlots = 64;
  Staging(uint32_t streams, uint32_t slots, uint32_t slot_bytes);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();
  // That of the stream's packet number `turn`, as they were sent.
  std::byte* at(uint32_t stream, uint64_t turn) const {
    return memory_ + (uint64_t{stream} * slots_ + turn % slots_) * slot_bytes_;
  }
  uint32_t slots() const { return slots_; }
  std::byte* memory() const { return memory_; }
  uint64_t size() const { return size_; }

 private:
  uint32_t slots_;
  uint32_t slot_bytes_;
  uint64_t size_;
  std::byte* memory_;
};

}  // namespace weft::stream
