// The ports of drivers in the simulator: ends of its links, as sockets of a runtime.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "port/byte_stream.h"
#include "port/datagram_port.h"
#include "sim/datagram_link.h"
#include "sim/host/runtime.h"
#include "sim/stream_link.h"

namespace weft::sim {

// A TCP connection, with what a kernel does for it: bytes that nobody read turn a close into a
// reset, and bytes that come after it are answered with one.
class SimStream final : public port::ByteStream, public Socket {
 public:
  struct Options {
    uint64_t seed = 1;
    double short_read = 0;  // share of the reads that bring a part only of what is there
  };
  // Runtime and end outlive it.
  SimStream(Runtime& runtime, StreamEnd& end, const Options& options);
  ~SimStream() override;

  Transfer send(std::span<const IoVec> pieces) const override;
  Transfer receive(std::span<const IoVec> pieces) const override;
  void shut_write() const override { end_.shutdown_write(); }
  void reset() override;
  void close() override;
  Unacknowledged unacknowledged() const override { return {}; }
  port::Address peer() const override { return {}; }
  int fd() const override { return fd_; }

  bool readable() const override;
  bool writable() const override { return end_.was_reset() || end_.writable() > 0; }
  bool broken() const override { return !deaf_ && end_.was_reset(); }

  // Closed by the driver; by a RST.
  bool closed() const { return fd_ < 0; }
  bool closed_by_reset() const { return closed_by_reset_; }
  // Nothing is read, as by a peer that hangs; until it is called again.
  void set_deaf(bool on);

 private:
  void leave();

  Runtime& runtime_;
  StreamEnd& end_;
  const Options options_;
  mutable SeededRandom random_;
  int fd_;
  bool deaf_ = false;
  bool closed_by_reset_ = false;
};

// A UDP socket whose path leads to one peer.
class SimDatagrams final : public port::DatagramPort, public Socket {
 public:
  struct Options {
    port::Address own;
    port::Address peer;
    uint64_t seed = 1;
    bool looks = true;  // look() works
    double joined = 0;  // share of the datagrams that a train goes on with, where it can
    double stall = 0;   // share of the trains for which there is no room at first
  };
  // Runtime and end outlive it.
  SimDatagrams(Runtime& runtime, DatagramEnd& end, const Options& options);
  ~SimDatagrams() override;

  Sent send(const Train& train, port::Segmentation& segmentation) override;
  Received receive(MutableBytes buffer) override;
  std::optional<Received> look(MutableBytes front) override;
  Received receive_into(std::span<const IoVec> pieces) override;
  Time held_until() const override { return Time::never(); }
  Losses losses() const override { return {}; }
  Properties properties() const override {
    return {.fd = fd_, .ipv6 = false, .receive_buffer = size_t{4} << 20};
  }
  void close() override;

  bool readable() const override { return !arrived_.empty() || end_.readable() > 0; }
  bool writable() const override { return !full_; }

 private:
  bool next();
  Received described(size_t bytes, size_t segment) const;

  Runtime& runtime_;
  DatagramEnd& end_;
  const Options options_;
  SeededRandom random_;
  int fd_;
  Alarm room_;
  bool full_ = false;
  std::deque<std::vector<std::byte>> arrived_;  // taken from the path, and not received yet
};

}  // namespace weft::sim
