#include "bench/cases.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace weft::bench {
namespace {

constexpr uint64_t kSmall = 64;        // bytes of a message in the rate and latency cases
constexpr uint64_t kBareFrom = 16384;  // bytes of a message; below it batches are what counts
constexpr uint64_t kColdFrom = 65536;  // bytes of a message; below it a call is what counts
constexpr uint64_t kCold = 64 << 20;   // bytes, of each side: more than caches hold
constexpr uint32_t kList = 64;         // work requests of a post list
constexpr uint32_t kQueuePairs = 500;  // of the memory case: many against what one page costs

const char* crc_name(bool crc) {
  return crc ? "crc" : "no-crc";
}

std::string tcp_name(uint64_t size) {
  return "tcp/" + size_name(size);
}

void add_bandwidth(std::vector<Spec>& cases, const CaseChoice& choice) {
  for (const uint64_t size : choice.sizes) {
    cases.push_back({.name = tcp_name(size), .operation = Operation::tcp_stream, .size = size});
    for (const auto& [word, operation] : {std::pair{"write", Operation::write},
                                          {"read", Operation::read},
                                          {"send", Operation::send}}) {
      for (const bool crc : {true, false}) {
        cases.push_back({.name = fmt::format("{}/{}/{}", word, size_name(size), crc_name(crc)),
                         .operation = operation,
                         .size = size,
                         .crc = crc,
                         .wait = choice.bandwidth_wait,
                         .baseline = tcp_name(size)});
      }
    }
  }
}

// What a program gets that does nothing but move the same FPDUs.
void add_bare_loops(std::vector<Spec>& cases, const CaseChoice& choice) {
  for (const uint64_t size : choice.sizes) {
    if (size < kBareFrom) continue;
    for (const bool crc : {true, false}) {
      cases.push_back({.name = fmt::format("bare/{}/{}", size_name(size), crc_name(crc)),
                       .operation = Operation::tcp_fpdus,
                       .size = size,
                       .crc = crc,
                       .baseline = tcp_name(size)});
    }
  }
}

void add_rates(std::vector<Spec>& cases) {
  for (const bool crc : {true, false}) {
    Spec spec{.name = fmt::format("write-list/{}/{}", kSmall, crc_name(crc)),
              .group = Group::rate,
              .operation = Operation::write,
              .size = kSmall,
              .crc = crc,
              .wait = Wait::poll,
              .depth = 16 * kList,
              .list = kList};
    cases.push_back(spec);
    spec.name = fmt::format("write-single/{}/{}", kSmall, crc_name(crc));
    spec.depth = 64;
    spec.list = 1;
    cases.push_back(spec);
  }
}

void add_latencies(std::vector<Spec>& cases) {
  const auto add = [&](const char* word, Operation operation, Wait wait, const char* wait_name,
                       const std::string& baseline) {
    Spec spec{.name = fmt::format("{}/{}/{}", word, kSmall, wait_name),
              .group = Group::latency,
              .operation = operation,
              .size = kSmall,
              .wait = wait,
              .baseline = baseline};
    cases.push_back(spec);
    return spec.name;
  };
  const std::string spin =
      add("tcp-ping-pong", Operation::tcp_ping_pong, Wait::poll, "spin", std::string{});
  add("send-ping-pong", Operation::send_ping_pong, Wait::poll, "poll", spin);
  add("write-ping-pong", Operation::write_ping_pong, Wait::poll, "poll", spin);
  const std::string block =
      add("tcp-ping-pong", Operation::tcp_ping_pong, Wait::event, "block", std::string{});
  add("send-ping-pong", Operation::send_ping_pong, Wait::event, "event", block);
  add("write-ping-pong", Operation::write_ping_pong, Wait::event, "event", block);
}

// Through memory of both sides; beside what a host has for two processes, and what its memory can
// do at best. There is no CRC.
std::vector<Spec> same_host_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  for (const uint64_t size : choice.sizes) {
    const auto add = [&](const char* word, Operation operation, const std::string& baseline) {
      all.push_back({.name = fmt::format("{}/{}", word, size_name(size)),
                     .operation = operation,
                     .size = size,
                     .wait = choice.bandwidth_wait,
                     .baseline = baseline,
                     .same_host = true});
    };
    add("tcp", Operation::tcp_stream, {});
    add("unix", Operation::unix_stream, tcp_name(size));
    if (size >= kBareFrom) add("pull", Operation::pull, tcp_name(size));
    add("write", Operation::write, tcp_name(size));
    add("read", Operation::read, tcp_name(size));
    add("send", Operation::send, tcp_name(size));
    if (size < kColdFrom) continue;
    // The same from memory that is in no cache, to such memory.
    for (const auto& [word, operation] : {std::pair{"tcp", Operation::tcp_stream},
                                          {"pull", Operation::pull},
                                          {"write", Operation::write},
                                          {"read", Operation::read}}) {
      add(word, operation, operation == Operation::tcp_stream ? "" : tcp_name(size) + "/cold");
      all.back().name += "/cold";
      all.back().memory = kCold;
    }
  }
  std::vector<Spec> rates;
  add_rates(rates);
  std::erase_if(rates, [](const Spec& spec) { return spec.crc; });
  std::vector<Spec> latencies;
  add_latencies(latencies);
  const auto beside = [&](const char* name, Operation operation, Wait wait, const char* baseline) {
    latencies.push_back(
        {.name = fmt::format("{}/{}/{}", name, kSmall, wait == Wait::poll ? "spin" : "block"),
         .group = Group::latency,
         .operation = operation,
         .size = kSmall,
         .wait = wait,
         .baseline = fmt::format("tcp-ping-pong/{}/{}", kSmall, baseline)});
  };
  beside("unix-ping-pong", Operation::unix_ping_pong, Wait::event, "block");
  beside("line-ping-pong", Operation::line_ping_pong, Wait::poll, "spin");
  beside("futex-ping-pong", Operation::futex_ping_pong, Wait::event, "block");
  for (auto* more : {&rates, &latencies}) {
    for (Spec& spec : *more) {
      spec.same_host = true;
      all.push_back(std::move(spec));
    }
  }
  return all;
}

}  // namespace

std::vector<Spec> rc_cases(const CaseChoice& choice) {
  if (choice.same_host) return same_host_cases(choice);
  std::vector<Spec> all;
  add_bandwidth(all, choice);
  add_bare_loops(all, choice);
  add_rates(all);
  add_latencies(all);
  all.push_back(
      {.name = "idle", .group = Group::rest, .operation = Operation::idle, .size = 65536});
  all.push_back({.name = "memory",
                 .group = Group::rest,
                 .operation = Operation::memory,
                 .size = 64,
                 .connections = kQueuePairs});
  return all;
}

const char* name_of(Suite suite) {
  switch (suite) {
    case Suite::rc:
      return "rc";
    case Suite::many:
      return "many";
    case Suite::uc:
      return "uc";
    case Suite::ud:
      return "ud";
    case Suite::chunk:
      return "chunk";
    case Suite::sdp:
      return "sdp";
    case Suite::rd:
      return "rd";
    case Suite::loss:
      break;
  }
  return "loss";
}

std::vector<uint64_t> default_sizes(Suite suite) {
  switch (suite) {
    case Suite::rc:
      return {64, 512, 4096, 16384, 65536, 1048576};
    case Suite::many:
      return {65536};
    case Suite::uc:
    case Suite::rd:
      return {65536, 1048576};
    case Suite::ud:
      return {};
    case Suite::chunk:
      return {65536, 131072, 262144, 524288, 1048576};
    case Suite::sdp:
      return {4096, 16384, 65536, 262144, 1048576};
    case Suite::loss:
      break;
  }
  return {65536};
}

std::vector<double> default_losses(Suite suite) {
  if (suite == Suite::rd) return {1};
  return {0, 0.1, 1, 3, 10};
}

std::vector<Spec> make_cases(const CaseChoice& wanted) {
  CaseChoice choice = wanted;
  if (choice.sizes.empty()) choice.sizes = default_sizes(choice.suite);
  if (choice.losses.empty()) choice.losses = default_losses(choice.suite);
  std::vector<Spec> all;
  switch (choice.suite) {
    case Suite::rc:
      all = rc_cases(choice);
      break;
    case Suite::many:
      all = many_cases(choice);
      break;
    case Suite::uc:
      all = uc_cases(choice);
      break;
    case Suite::ud:
      all = ud_cases(choice);
      break;
    case Suite::loss:
      all = loss_cases(choice);
      break;
    case Suite::chunk:
      all = chunk_cases(choice);
      break;
    case Suite::sdp:
      all = sdp_cases(choice);
      break;
    case Suite::rd:
      all = rd_cases(choice);
      break;
  }
  if (choice.only.empty()) return all;

  const auto chosen = [&](const Spec& spec) {
    return std::any_of(choice.only.begin(), choice.only.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), spec.name.c_str(), 0) == 0;
    });
  };
  const auto needed = [&](const Spec& spec) {
    return std::any_of(all.begin(), all.end(), [&](const Spec& other) {
      return other.baseline == spec.name && chosen(other);
    });
  };
  std::vector<Spec> result;
  for (const Spec& spec : all) {
    if (chosen(spec) || needed(spec)) result.push_back(spec);
  }
  return result;
}

std::string size_name(uint64_t bytes) {
  if (bytes >= 1048576 && bytes % 1048576 == 0) return fmt::format("{}M", bytes / 1048576);
  if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{}K", bytes / 1024);
  return std::to_string(bytes);
}

}  // namespace weft::bench
