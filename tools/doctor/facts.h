// What `weft doctor` looks at, gathered in one place, so that judging it (checks.h) is pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::doctor {

struct LibraryFact {
  std::string path;
  std::string error;   // why it cannot be loaded; empty when it can
  std::string remedy;  // empty: weft is to be built again
};

struct AddressFact {
  std::string address;
  std::string interface;
  uint32_t mtu = 0;  // bytes
  bool loopback = false;
};

// Sockets by SDP (docs/sdp.md).
struct SdpFact {
  LibraryFact library;                  // libweft-sdp.so
  std::string rules;                    // the file of rules; empty where none is read
  std::vector<std::string> complaints;  // about its lines, a sentence each
};

struct CongestionFact {
  std::string host_default;         // net.ipv4.tcp_congestion_control; empty when unreadable
  std::vector<std::string> usable;  // of cubic and reno: those that this user may choose
};

// The ports that bind(0) hands out, without those that weft never uses (spec/addressing 2.2).
struct PortFact {
  uint16_t low = 0;
  uint16_t high = 0;
  uint32_t usable = 0;
  uint32_t in_use = 0;  // of the usable ones, by anyone in this network namespace
};

// Bytes that the kernel gave for it, to this user; without its own book-keeping, which is as much
// again.
struct SocketMemoryFact {
  std::optional<uint64_t> receive;
  std::optional<uint64_t> send;
};

struct DoctorFacts {
  std::vector<LibraryFact> libraries;
  std::vector<AddressFact> addresses;  // weft0's GIDs
  std::string netlink_error;           // why the kernel may not be asked for them; or empty
  std::string device_complaint;        // why an option does not fit this machine; or empty
  uint64_t descriptors_soft = 0;
  uint64_t descriptors_hard = 0;
  CongestionFact congestion;
  SocketMemoryFact socket_memory;
  std::optional<PortFact> ports;
  std::string bind_error;  // why no port could be had on TCP and UDP; empty when one could
  std::string crc_engine;
  std::vector<std::string> kernel_devices;  // /sys/class/infiniband
  std::vector<std::string> option_errors;   // sentences about WEFT_ variables
  SdpFact sdp;
};

// Reads this machine. Binds a port and loads the libraries in a child process on the way; leaves
// nothing.
DoctorFacts gather_facts();

}  // namespace weft::doctor
