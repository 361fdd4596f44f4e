// The UDP datagrams of a capture file: classic pcap, either byte order, of Ethernet (with VLAN
// tags), raw IP and Linux "cooked" links. IPv4 without fragments: a capture of fragments has to be
// put together by others first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "stream/packet.h"

namespace weft::stream {

struct UdpDatagram {
  uint16_t port;  // it was sent to
  ConstPacket payload;
};

class PcapFile {
 public:
  struct Record {
    int64_t time_ns;                      // when it was captured: since 1970
    std::optional<UdpDatagram> datagram;  // nothing when it is none, or was not kept whole
  };

  // `bytes` are referred to. The error is what a user is told behind the file's name.
  static Result<PcapFile, std::string> open(ConstPacket bytes);
  // In the file's order; nothing at its end, or where it was cut off.
  std::optional<Record> next();

 private:
  PcapFile(ConstPacket rest, uint32_t link, bool swapped, bool nano)
      : rest_(rest), link_(link), swapped_(swapped), nano_(nano) {}

  ConstPacket rest_;
  uint32_t link_;
  bool swapped_;
  bool nano_;  // its times are in nanoseconds, not in microseconds
};

}  // namespace weft::stream
