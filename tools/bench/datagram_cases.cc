// The cases of UC and UD, and of loss.
#include <fmt/format.h>

#include "bench/cases.h"

namespace weft::bench {
namespace {

constexpr uint64_t kWindow = 1 << 20;      // datapath: loses nothing, costs little
constexpr uint64_t kUsualDatagram = 8192;  // of programs that use plain UDP for bulk data
constexpr uint64_t kSmall = 64;

struct SendMode {
  const char* name;
  uint64_t window;
};
constexpr SendMode kSendModes[] = {{"flood", 0}, {"window", kWindow}};

Spec stream(std::string name, Operation operation, Service service, uint64_t size) {
  return {.name = std::move(name), .operation = operation, .size = size, .service = service};
}

std::string percent(double loss) {
  return fmt::format("{:g}%", loss);
}

}  // namespace

std::vector<Spec> uc_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  for (const SendMode& mode : kSendModes) {
    for (const uint64_t size : choice.udp_sizes) {
      Spec udp = stream(fmt::format("udp/{}/{}", size_name(size), mode.name), Operation::udp_stream,
                        Service::rc, size);
      udp.window = mode.window;
      all.push_back(udp);
    }
    for (const uint64_t size : choice.sizes) {
      for (const auto& [word, operation] : {std::pair{"write", Operation::write},
                                            {"write-imm", Operation::write_immediate},
                                            {"send", Operation::send}}) {
        for (const bool crc : {false, true}) {
          Spec uc =
              stream(fmt::format("{}/{}/{}{}", word, size_name(size), mode.name, crc ? "/crc" : ""),
                     operation, Service::uc, size);
          uc.crc = crc;
          uc.wait = choice.bandwidth_wait;
          uc.window = mode.window;
          uc.baseline = fmt::format("udp/{}/{}", size_name(kUsualDatagram), mode.name);
          all.push_back(uc);
          if (operation != Operation::write || crc || mode.window != 0) continue;
          // Whoever expects completions sleeps where the sockets are, and Writes wake him.
          uc.name += "/get-cq-event";
          uc.inside = uc.wait == Wait::event;
          if (uc.inside) all.push_back(uc);
        }
      }
    }
  }
  // A Read waits for its answer, so it needs no window.
  for (const uint64_t size : choice.sizes) {
    Spec read = stream(fmt::format("read/{}", size_name(size)), Operation::read, Service::uc, size);
    read.crc = false;
    read.wait = choice.bandwidth_wait;
    read.depth = 4;
    read.baseline = fmt::format("udp/{}/window", size_name(kUsualDatagram));
    all.push_back(read);
  }
  return all;
}

std::vector<Spec> ud_cases(const CaseChoice&) {
  std::vector<Spec> all;
  for (const auto& [how, wait] : {std::pair{"poll", Wait::poll}, {"event", Wait::event}}) {
    Spec udp{.name = fmt::format("udp-ping-pong/{}/{}", kSmall, how),
             .group = Group::latency,
             .operation = Operation::udp_ping_pong,
             .size = kSmall,
             .wait = wait};
    Spec ud = udp;
    ud.name = fmt::format("ud-ping-pong/{}/{}", kSmall, how);
    ud.operation = Operation::send_ping_pong;
    ud.service = Service::ud;
    ud.baseline = udp.name;
    Spec uc = ud;
    uc.name = fmt::format("uc-ping-pong/{}/{}", kSmall, how);
    uc.service = Service::uc;
    for (const Spec& spec : {udp, ud, uc}) all.push_back(spec);
  }
  return all;
}

// At an offered rate that nobody is too slow for, so that nothing is lost but by the faults.
std::vector<Spec> loss_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  const bool by_nft = choice.loss_by == LossBy::nft;
  for (const double loss : choice.losses) {
    for (const uint64_t size : choice.sizes) {
      const auto add = [&](const char* word, Operation operation, Service service) {
        Spec spec = stream(fmt::format("{}/{}/{}", word, size_name(size), percent(loss)), operation,
                           service, size);
        spec.crc = false;
        // These two are as fast as the network lets them be.
        if (service == Service::uc && operation != Operation::read) spec.gbps = choice.gbps;
        if (operation == Operation::read) spec.depth = 4;
        if (by_nft) {
          spec.loss = loss / 100;
        } else if (loss > 0) {
          spec.fault = fmt::format("loss:{:g},way:out,seed:1", loss / 100);
        }
        all.push_back(spec);
      };
      add("uc-write", Operation::write, Service::uc);
      add("uc-write-imm", Operation::write_immediate, Service::uc);
      add("uc-send", Operation::send, Service::uc);
      add("uc-read", Operation::read, Service::uc);
      // Of the network alone, as what stands below; and of the size of a datagram.
      if (by_nft && size >= kSmallestDatagram && size <= kLargestDatagram) {
        Spec udp = stream(fmt::format("udp/{}/{}", size_name(size), percent(loss)),
                          Operation::udp_stream, Service::rc, size);
        udp.gbps = choice.gbps;
        udp.loss = loss / 100;
        all.push_back(udp);
      }
      // What runs over TCP does not pass the injector's datagrams.
      if (by_nft) {
        add("rc-write", Operation::write, Service::rc);
        add("rc-read", Operation::read, Service::rc);
        add("tcp", Operation::tcp_stream, Service::rc);
      }
    }
  }
  return all;
}

}  // namespace weft::bench
