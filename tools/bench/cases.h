// The cases of the benchmarks, in the order in which a repetition runs them.
#pragma once

#include <string>
#include <vector>

#include "bench/spec.h"

namespace weft::bench {

// What `weft bench` has a command for.
enum class Suite : uint8_t { rc, many, uc, ud, loss, chunk, sdp, rd };
const char* name_of(Suite suite);

// How messages get lost in the loss suite: by WEFT_FAULT in both sides, or by nft(8) in the network
// between them.
enum class LossBy : uint8_t { fault, nft };

struct CaseChoice {
  Suite suite = Suite::rc;
  std::vector<uint64_t> sizes;  // of the bandwidth cases; none: those of default_sizes()
  uint64_t piece = 16384;       // of a Write, of the chunk suite
  std::vector<uint64_t> udp_sizes = {8192, 65000};  // datagrams of plain UDP, of the uc suite
  std::vector<double> losses;    // percent, of the loss and rd suites; none: default_losses()
  std::vector<double> delays;    // ms each way, of the rd suite
  bool link = false;             // the rd suite on a link of its own, which has delays and losses
  double link_mbps = 0;          // 0: any number
  std::vector<uint32_t> peers;   // the rd suite with so many, instead of its other cases
  std::vector<uint32_t> setup;   // the same with the set-up of so many connections at a time
  std::vector<uint32_t> beside;  // there: so many streams beside as many of plain TCP
  double gbps = 1;               // offered, of the loss suite
  LossBy loss_by = LossBy::fault;
  std::vector<std::string> only;  // patterns of fnmatch(3) for names; none means all
  Wait bandwidth_wait = Wait::event;
  std::vector<uint32_t> connections = {1, 2, 4, 8};  // of the sdp suite
  bool apart = false;      // the sdp suite between two hosts, or what looks like it
  bool same_host = false;  // the rc suite through memory, and what else a host has
};

std::vector<uint64_t> default_sizes(Suite suite);
std::vector<double> default_losses(Suite suite);

inline constexpr uint64_t kLargestMessage = 64U << 20;
inline constexpr uint64_t kSmallestDatagram = kUdpHeader + 1;  // of a stream
inline constexpr uint64_t kLargestDatagram = 65507;            // of UDP over IPv4

// Baselines stand right before what is compared with them; a baseline that a chosen case needs is
// there even when `only` does not name it.
std::vector<Spec> make_cases(const CaseChoice& wanted);
// Those of one suite, without a choice by name.
std::vector<Spec> rc_cases(const CaseChoice& choice);
std::vector<Spec> many_cases(const CaseChoice& choice);
std::vector<Spec> uc_cases(const CaseChoice& choice);
std::vector<Spec> ud_cases(const CaseChoice& choice);
std::vector<Spec> loss_cases(const CaseChoice& choice);
std::vector<Spec> chunk_cases(const CaseChoice& choice);  // throws kit::Failure
std::vector<Spec> sdp_cases(const CaseChoice& choice);
std::vector<Spec> rd_cases(const CaseChoice& choice);

}  // namespace weft::bench
