// Every option of weft, each in one line of one table (options.cc) and one field here. An option
// `name` is read from the environment as WEFT_NAME; `weft info --options` prints the table.
//
// To add one: a field with its default in Options, a line in the table. An enum also needs its
// Words.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault_spec.h"
#include "base/log.h"

namespace weft::config {

// What the device says it is (spec/abi 2.1); the wire is iWARP in each case.
enum class Identity : uint8_t { ib, iwarp, ib_lid };
// Whether an MPA Request asks for the extension bit X (spec/mpa 2.7).
enum class Extensions : uint8_t { automatic, off };
// When a Send or Write is complete (spec/rdmap 4.4): at the peer, or when the kernel has its last
// byte.
enum class CompletionRule : uint8_t { delivered, llp };
// TCP congestion control of weft's streams; automatic leaves bbr for peers on this host or close
// by.
enum class Congestion : uint8_t { automatic, keep, cubic, reno, bbr };
// What the passive side of an IB-style bring-up compares with the GID it expects
// (spec/addressing 5.6). user: the address and, on one host, who has the socket (cm/peer_user.h).
enum class PeerCheck : uint8_t { user, address, gid };

// What RC queue pairs connect by: TCP; or, where both sides say so, datagrams of the sockets that
// all queue pairs share (spec/wdp-rd 7).
enum class Rc : uint8_t { tcp, udp };

// What the two ends of an RC connection on one host share (spec/same-host): memory for all bytes,
// where large payloads are pulled from the peer's; or a ring of memory alone.
enum class SameHost : uint8_t { on, ring, off };

// How a UC queue pair that is told its peer's number comes to it (spec/addressing 3, spec/wdp-uc
// 6).
enum class UcBringUp : uint8_t { handshake, none };

// Whether UD messages may be lost, or go by channels to peers that have them (spec/wdp-rd).
enum class Ud : uint8_t { plain, reliable };

// A value type. The defaults are the field initialisers; the sentences are in the table.
struct Options {
  Identity identity = Identity::ib;
  std::string ip;
  uint16_t lid = 0;
  bool crc = true;
  Extensions ext = Extensions::automatic;
  CompletionRule completion = CompletionRule::delivered;
  bool big_fpdu = false;
  bool p2p = false;
  uint32_t private_data = 248;  // bytes
  PeerCheck peer_check = PeerCheck::user;
  std::chrono::milliseconds connect_timeout{30'000};
  std::chrono::milliseconds rnr_wait{10'000};
  std::chrono::milliseconds responder_wait{100};
  uint32_t engines = 0;
  std::chrono::microseconds spin{50};
  std::chrono::microseconds takeover{1'000};
  std::chrono::microseconds coalesce{100};
  Congestion congestion = Congestion::automatic;
  SameHost same_host = SameHost::on;
  uint32_t pull_from = 0;  // bytes
  Rc rc = Rc::tcp;
  bool ecn = true;
  double fixed_rate = 0;  // Gb/s
  UcBringUp uc = UcBringUp::handshake;
  uint16_t uc_port = 0;
  bool datagram_crc = false;
  Ud ud = Ud::plain;
  bool ud_big = false;
  double rate = 0;  // Gb/s
  bool counters = true;
  bool no_hook = false;
  std::string trace;
  uint32_t trace_snap = 0;     // bytes
  uint32_t trace_size = 1024;  // MiB
  FaultSpec fault;
  std::string fault_log;
  ::weft::log::Level log = ::weft::log::Level::warn;
};

// One line of the table.
struct OptionInfo {
  std::string_view name;
  std::string_view unit;                                 // "ms", "us", "bytes", or empty
  std::string_view sentence;                             // what the option does
  std::string accepted;                                  // "on|off", "0..8"
  std::string env;                                       // "WEFT_NAME"
  std::string default_text;                              // as value_of writes it
  bool (*set)(Options& options, std::string_view text);  // false, and no change, when not accepted
  std::string (*text)(const Options& options);
  // What is wrong with a text that is not accepted; nullptr where `accepted` says it all.
  std::string (*complaint)(std::string_view text) = nullptr;
};

// All options in the order in which `weft info --options` prints them. Any thread.
std::span<const OptionInfo> table();

// The option's value as the environment would give it. Any thread.
std::string value_of(const Options& options, const OptionInfo& info);

// Reads every option through `getenv` (nullptr or "": not set, the default holds). A value that is
// not accepted keeps the default and appends a sentence to `complaints`, which may be null. Pure.
Options parse(const std::function<const char*(const char*)>& getenv,
              std::vector<std::string>* complaints);

// What is wrong with the variable `name` of the environment, which has this value: the name is no
// option's, or the value is not accepted. Empty where nothing is. Pure.
// WEFT_SDP_ belongs to the socket library, and tests of this project have three of their own.
std::string objection(std::string_view name, std::string_view value);

// A sentence for each WEFT_ variable of `environment` (environ(7); may be null) that names no
// option. Pure.
std::vector<std::string> unknown_variables(const char* const* environment);

// The options of this process: read from the environment at the first call, which also sets the log
// level and logs what is wrong. A set-user-ID program gets the defaults. Any thread; the reference
// is good until the process ends, also in exit handlers.
const Options& options();

}  // namespace weft::config
