#include "config/options.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/adapter_ports.h"
#include "base/nearest_word.h"
#include "base/number_in.h"

namespace weft::config {
namespace {

// Words<T>: the words that stand for values of T. The first word of a value is the one that is
// printed.
template <class T>
struct Words;
template <>
struct Words<bool> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, bool>>(
      {{"on", true}, {"off", false}, {"1", true}, {"0", false}});
};
template <>
struct Words<Identity> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, Identity>>(
      {{"ib", Identity::ib}, {"iwarp", Identity::iwarp}, {"ib-lid", Identity::ib_lid}});
};
template <>
struct Words<Extensions> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, Extensions>>(
      {{"auto", Extensions::automatic}, {"off", Extensions::off}});
};
template <>
struct Words<CompletionRule> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, CompletionRule>>(
      {{"delivered", CompletionRule::delivered}, {"llp", CompletionRule::llp}});
};
template <>
struct Words<Congestion> {
  static constexpr auto all =
      std::to_array<std::pair<std::string_view, Congestion>>({{"auto", Congestion::automatic},
                                                              {"keep", Congestion::keep},
                                                              {"cubic", Congestion::cubic},
                                                              {"reno", Congestion::reno},
                                                              {"bbr", Congestion::bbr}});
};
template <>
struct Words<SameHost> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, SameHost>>(
      {{"on", SameHost::on}, {"ring", SameHost::ring}, {"off", SameHost::off}});
};
template <>
struct Words<UcBringUp> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, UcBringUp>>(
      {{"handshake", UcBringUp::handshake}, {"static", UcBringUp::none}});
};
template <>
struct Words<Rc> {
  static constexpr auto all =
      std::to_array<std::pair<std::string_view, Rc>>({{"tcp", Rc::tcp}, {"udp", Rc::udp}});
};
template <>
struct Words<Ud> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, Ud>>(
      {{"plain", Ud::plain}, {"reliable", Ud::reliable}});
};
template <>
struct Words<PeerCheck> {
  static constexpr auto all = std::to_array<std::pair<std::string_view, PeerCheck>>(
      {{"user", PeerCheck::user}, {"address", PeerCheck::address}, {"gid", PeerCheck::gid}});
};
template <>
struct Words<log::Level> {
  static constexpr auto all =
      std::to_array<std::pair<std::string_view, log::Level>>({{"off", log::Level::off},
                                                              {"error", log::Level::error},
                                                              {"warn", log::Level::warn},
                                                              {"info", log::Level::info},
                                                              {"debug", log::Level::debug}});
};

constexpr std::string_view kPrefix = "WEFT_";

std::string env_name(std::string_view name) {
  std::string env{kPrefix};
  for (const char c : name) env += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return env;
}

// The type of the field that `Field` points to, and its plain number when that is a duration.
template <auto Field>
using FieldType = std::remove_reference_t<decltype(std::declval<Options&>().*Field)>;

template <class T>
struct Number {
  static constexpr uint64_t of(T v) { return v; }
};
template <class Rep, class Period>
struct Number<std::chrono::duration<Rep, Period>> {
  static constexpr uint64_t of(std::chrono::duration<Rep, Period> d) {
    return static_cast<uint64_t>(d.count());
  }
};

OptionInfo finished(OptionInfo info) {
  info.env = env_name(info.name);
  info.default_text = info.text(Options{});
  return info;
}

// An option whose values are words.
template <auto Field>
OptionInfo word(std::string_view name, std::string_view sentence) {
  using T = FieldType<Field>;
  OptionInfo info{.name = name, .sentence = sentence};
  for (const auto& [text, value] : Words<T>::all) {
    if (!info.accepted.empty()) info.accepted += '|';
    info.accepted += text;
  }
  info.set = [](Options& options, std::string_view given) {
    for (const auto& [text, value] : Words<T>::all) {
      if (text != given) continue;
      options.*Field = value;
      return true;
    }
    return false;
  };
  info.text = [](const Options& options) {
    for (const auto& [text, value] : Words<T>::all) {
      if (options.*Field == value) return std::string(text);
    }
    return std::string();
  };
  return finished(std::move(info));
}

// An option that is a whole number of `unit`, in decimal or as 0x and hexadecimal.
template <auto Field, uint64_t Min, uint64_t Max>
OptionInfo number(std::string_view name, std::string_view unit, std::string_view sentence) {
  using T = FieldType<Field>;
  OptionInfo info{.name = name, .unit = unit, .sentence = sentence};
  info.accepted = std::to_string(Min) + ".." + std::to_string(Max);
  info.set = [](Options& options, std::string_view given) {
    int base = 10;
    if (given.starts_with("0x") || given.starts_with("0X")) {
      base = 16;
      given.remove_prefix(2);
    }
    const auto v = number_in<uint64_t>(given, base);
    if (!v || *v < Min || *v > Max) return false;
    options.*Field = static_cast<T>(*v);
    return true;
  };
  info.text = [](const Options& options) { return std::to_string(Number<T>::of(options.*Field)); };
  return finished(std::move(info));
}

// spec/addressing 2.2: neither the ports of the system nor those of multicast groups are queue
// pairs'.
OptionInfo of_queue_pairs(OptionInfo info) {
  info.accepted = "0, ";
  info.accepted += kAdapterPorts;
  info.set = [](Options& options, std::string_view given) {
    static const auto any = number<&Options::uc_port, 0, 65534>("", "", "").set;
    Options wanted = options;
    if (!any(wanted, given)) return false;
    if (wanted.uc_port != 0 && !is_adapter_port(wanted.uc_port)) return false;
    options.uc_port = wanted.uc_port;
    return true;
  };
  return info;
}

std::string shortest(double v) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), v).ptr};
}

// An option that is a number of `unit` which need not be whole.
template <auto Field, uint64_t Max>
OptionInfo real(std::string_view name, std::string_view unit, std::string_view sentence) {
  OptionInfo info{.name = name, .unit = unit, .sentence = sentence};
  info.accepted = "0.." + std::to_string(Max);
  info.set = [](Options& options, std::string_view given) {
    double v = 0;
    const char* end = given.data() + given.size();
    const auto [stopped, error] = std::from_chars(given.data(), end, v);
    if (error != std::errc{} || stopped != end || !(v >= 0) || v > double{Max}) return false;
    options.*Field = v;
    return true;
  };
  info.text = [](const Options& options) { return shortest(options.*Field); };
  return finished(std::move(info));
}

// An option that is any text. Its user judges it.
template <auto Field>
OptionInfo text(std::string_view name, std::string_view accepted, std::string_view sentence) {
  OptionInfo info{.name = name, .sentence = sentence, .accepted = std::string(accepted)};
  info.set = [](Options& options, std::string_view given) {
    options.*Field = given;
    return true;
  };
  info.text = [](const Options& options) { return options.*Field; };
  return finished(std::move(info));
}

// The option that is a FaultSpec.
OptionInfo faults(std::string_view name, std::string_view sentence) {
  OptionInfo info{.name = name, .sentence = sentence};
  info.accepted = "NAME:VALUE,.. of docs/faults.md";
  info.set = [](Options& options, std::string_view given) {
    const auto spec = FaultSpec::parse(given);
    if (spec.ok()) options.fault = *spec;
    return spec.ok();
  };
  info.text = [](const Options& options) { return options.fault.to_string(); };
  info.complaint = [](std::string_view given) {
    const auto spec = FaultSpec::parse(given);
    return spec.ok() ? std::string() : spec.error();
  };
  return finished(std::move(info));
}

std::vector<OptionInfo> make_table() {
  using O = Options;
  return {
      word<&O::identity>(
          "identity",
          "What the device says it is: an InfiniBand adapter on Ethernet, an iWARP adapter, or "
          "an InfiniBand adapter on an InfiniBand link, which is reached by LID."),
      text<&O::ip>("ip", "an address or an interface name",
                   "The local address, or the interface whose address, becomes GID 0; empty lets "
                   "weft choose."),
      number<&O::lid, 0, 0xffff>(
          "lid", "",
          "LID of the port; 0 takes the low 16 bits of the first IPv4 address, which is "
          "what peers resolve."),
      word<&O::crc>("crc", "Whether MPA asks for CRC32C on every FPDU; off leaves it to the peer."),
      word<&O::ext>(
          "ext",
          "Whether weft offers its extensions (immediate data, atomics, completion at the peer) to "
          "peers; off speaks plain iWARP."),
      word<&O::completion>(
          "completion",
          "When a Send or Write completes: delivered to the peer, or llp, handed to the kernel."),
      word<&O::big_fpdu>("big_fpdu",
                         "Whether FPDUs larger than the TCP segment are also sent to peers without "
                         "the extension bit."),
      word<&O::p2p>(
          "p2p",
          "Whether rdma_cm connections ask for MPA's peer-to-peer model, in which either side "
          "may send first."),
      number<&O::private_data, 0, 255>(
          "private_data", "bytes",
          "Most private data that rdma_connect and rdma_accept take. Linux siw takes 252; a longer "
          "Reply would crash the kernel of its host, so a peer that is not weft is never sent more "
          "than 252."),
      word<&O::peer_check>(
          "peer_check",
          "What a peer must show that connects to a QP by number: user and address want the source "
          "address of the expected GID; gid takes the GID that the peer claims, for peers behind "
          "NAT. user also wants a peer on this host to be of this process's user, of root, or of "
          "the user that holds the port in its QPN."),
      number<&O::connect_timeout, 1, 3'600'000>(
          "connect_timeout", "ms", "How long rdma_connect waits for the peer's MPA Reply."),
      number<&O::rnr_wait, 0, 3'600'000>(
          "rnr_wait", "ms",
          "How long a Send of a plain iWARP peer waits for a posted receive before "
          "the stream is terminated."),
      number<&O::responder_wait, 0, 3'600'000>(
          "responder_wait", "ms",
          "How long the passive side waits for the first message of a plain iWARP peer before it "
          "sends its own. 0 waits for ever, as RFC 5044 says, and hangs programs whose server "
          "speaks first to a Linux siw."),
      number<&O::engines, 0, 8>("engines", "",
                                "Engines of a process; 0 takes one for every 4 CPUs."),
      number<&O::spin, 0, 100'000>("spin", "us",
                                   "How long a blocking wait looks for events before it sleeps."),
      number<&O::takeover, 1, 1'000'000>(
          "takeover", "us",
          "Delay before the helper thread takes over from a program that has stopped polling. It "
          "grows to four times this value, at most 4 ms, while the program polls steadily (for 50 "
          "ms or more) and receives few datagrams but answers."),
      number<&O::coalesce, 0, 10'000>(
          "coalesce", "us",
          "How long the helper thread rests between two looks at the sockets while much arrives "
          "and no thread of the program waits for it. 0: never."),
      word<&O::congestion>("congestion",
                           "TCP congestion control of weft's streams. auto replaces bbr for peers "
                           "on this host or close by, keep leaves the host's choice."),
      word<&O::same_host>(
          "same_host",
          "How two RC queue pairs of one user on this host exchange bytes: through memory that "
          "both "
          "share, large payloads pulled from the peer's memory (on), through the shared memory "
          "alone (ring), or over TCP as with any other peer (off); see docs/spec/same-host.md."),
      number<&O::pull_from, 0, 1'073'741'824>(
          "pull_from", "bytes",
          "With WEFT_SAME_HOST=on: from which size on a payload is pulled from the peer's memory; "
          "a smaller one is copied through the memory that both share. 0 measures how fast the "
          "kernel copies between processes, and takes 24 KB where it is fast, else 384 KB."),
      word<&O::rc>(
          "rc",
          "What carries RC: a TCP connection for each queue pair (tcp), or datagrams of the "
          "UDP sockets that all queue pairs share, if the peer is told so as well (udp); see "
          "docs/spec/wdp-rd.md."),
      word<&O::ecn>("ecn",
                    "Whether routers may mark datagrams of reliable channels instead of dropping "
                    "them (ECN), which slows their sender down; see docs/spec/wdp-rd.md."),
      real<&O::fixed_rate, 1000>(
          "fixed_rate", "Gb/s",
          "The rate at which each reliable channel sends (ud=reliable, rc=udp, queue pairs of type "
          "RD), headers of WDP included, whatever is lost or marked: for networks of your own "
          "alone, for it makes no room for others. 0: CUBIC finds the rate; see "
          "docs/spec/wdp-rd.md."),
      word<&O::uc>(
          "uc",
          "How a UC queue pair that is told its peer's number reaches the peer: by a handshake, or "
          "without one (static), as senders built in hardware need it; see docs/uc.md."),
      of_queue_pairs(number<&O::uc_port, 0, 65534>(
          "uc_port", "",
          "With WEFT_UC=static: the port of the first 254 queue pairs, numbered from 1; memory "
          "keys are then 0x100, 0x200 and so on. A sender built in hardware can know them "
          "beforehand, and so can an attacker. 0: any.")),
      word<&O::datagram_crc>("datagram_crc",
                             "Whether data of UC and UD carry a CRC32C besides the checksum of "
                             "UDP. For UC either side turns it on for both."),
      word<&O::ud>("ud",
                   "Whether UD messages may be lost (plain), or are repeated until the peer has "
                   "them, once and in order (reliable), if the peer is told so as well; see "
                   "docs/spec/wdp-rd.md. Multicast is always plain."),
      word<&O::ud_big>("ud_big",
                       "Whether UD messages may be larger than the MTU, up to 65475 bytes "
                       "(65456 with ud=reliable); IP then fragments them."),
      real<&O::rate, 1000>(
          "rate", "Gb/s",
          "Most that a UC or UD queue pair sends, headers of WDP included; 0: no limit."),
      word<&O::counters>("counters",
                         "Whether `weft stat` of the same user may read what this process counts; "
                         "it costs one file descriptor."),
      word<&O::no_hook>(
          "no_hook",
          "Whether weft leaves programs to look for the kernel's device file "
          "/dev/infiniband/uverbs0 by themselves. Without that file UCX then finds no weft0."),
      text<&O::trace>(
          "trace", "a file name, %p in it is the process's number",
          "The capture file that records what passes over each connection and in datagrams, "
          "for Wireshark; empty records nothing. A name that is taken gets a number."),
      number<&O::trace_snap, 0, 65535>(
          "trace_snap", "bytes",
          "Most bytes of each MPA frame and of each datagram that the trace keeps. 0 keeps "
          "everything, in segments as the kernel took and gave them."),
      number<&O::trace_size, 1, 1'048'576>("trace_size", "MiB",
                                           "Largest size of a trace; at that size it ends."),
      faults("fault",
             "Faults on purpose, such as loss:0.01,delay:1ms,split:0.1,seed:7; empty: none. See "
             "docs/faults.md."),
      text<&O::fault_log>(
          "fault_log", "a file name, %p in it is the process's number",
          "The file that gets a line for each datagram that WEFT_FAULT loses: direction, other "
          "end, size, and its first 64 bytes; see docs/faults.md."),
      word<&O::log>("log", "The least important messages that are written to standard error."),
  };
}

// "on|off|1" as "on, off or 1".
std::string plain_list(std::string list) {
  const size_t last = list.rfind('|');
  if (last == std::string::npos) return list;
  list.replace(last, 1, " or ");
  for (size_t at = list.find('|'); at != std::string::npos; at = list.find('|', at)) {
    list.replace(at, 1, ", ");
  }
  return list;
}

// Why a value is not accepted.
std::string fault_of(const OptionInfo& info, std::string_view given) {
  std::string s = info.env + "=" + std::string(given) + " is not accepted: ";
  if (info.complaint != nullptr) return s + info.complaint(given);
  s += std::string(info.name) + " is " + plain_list(info.accepted);
  if (!info.unit.empty()) s += " " + std::string(info.unit);
  return s;
}

std::string refusal(const OptionInfo& info, std::string_view given) {
  if (info.complaint != nullptr) return fault_of(info, given) + "; the option is ignored";
  return fault_of(info, given) + "; the default " + info.default_text + " is kept";
}

// Seeds of the simulator, and how the guest of tests/interop runs.
constexpr std::array<std::string_view, 3> kOfTests = {"WEFT_SIM_SEED", "WEFT_SIM_SEEDS",
                                                      "WEFT_GUEST_ACCEL"};

const OptionInfo* find_option(std::string_view env) {
  for (const OptionInfo& info : table()) {
    if (info.env == env) return &info;
  }
  return nullptr;
}

bool may_be_option(std::string_view name) {
  return name.starts_with(kPrefix) && !name.starts_with("WEFT_SDP_") &&
         std::find(kOfTests.begin(), kOfTests.end(), name) == kOfTests.end();
}

std::string nearest_option(std::string_view name) {
  // All begin alike, which makes none of them nearer.
  std::vector<std::string> known;
  for (const OptionInfo& info : table()) known.push_back(info.env.substr(kPrefix.size()));
  const std::string nearest = nearest_word(name.substr(kPrefix.size()), known);
  if (nearest.empty()) return "`weft info --options` lists them";
  return "did you mean " + std::string(kPrefix) + nearest + "?";
}

Options load() {
  std::vector<std::string> complaints;
  Options loaded = parse([](const char* name) { return ::secure_getenv(name); }, &complaints);
  for (std::string& c : unknown_variables(environ)) complaints.push_back(std::move(c));
  log::set_level(loaded.log);
  for (const std::string& c : complaints) WEFT_LOG(warn, "%s", c.c_str());
  return loaded;
}

}  // namespace

std::span<const OptionInfo> table() {
  // Never destroyed, like the options themselves: another thread may still read while the process
  // exits.
  static const auto& all = *new std::vector<OptionInfo>(make_table());
  return all;
}

std::string value_of(const Options& options, const OptionInfo& info) {
  return info.text(options);
}

Options parse(const std::function<const char*(const char*)>& getenv,
              std::vector<std::string>* complaints) {
  Options parsed;
  for (const OptionInfo& info : table()) {
    const char* given = getenv(info.env.c_str());
    if (given == nullptr || *given == '\0' || info.set(parsed, given)) continue;
    if (complaints != nullptr) complaints->push_back(refusal(info, given));
  }
  return parsed;
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> sentences;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!may_be_option(name) || find_option(name) != nullptr) continue;
    sentences.push_back(std::string(name) + " is not an option of weft and is ignored; " +
                        nearest_option(name));
  }
  return sentences;
}

std::string objection(std::string_view name, std::string_view value) {
  if (!may_be_option(name)) return {};
  const OptionInfo* info = find_option(name);
  if (info == nullptr) {
    return std::string(name) + " is not an option of weft; " + nearest_option(name);
  }
  Options ignored;
  return value.empty() || info->set(ignored, value) ? std::string() : fault_of(*info, value);
}

const Options& options() {
  static const Options& loaded = *new Options(load());
  return loaded;
}

}  // namespace weft::config
