#include "sdp/rules/parse.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "base/nearest_word.h"
#include "base/result.h"

namespace weft::sdp {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kBlanks = " \t\r\v\f";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    const size_t size = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
}

// What stands in a sentence between quotes: nothing that could disturb a terminal.
std::string quoted(std::string_view word) {
  constexpr size_t kMost = 60;
  std::string out = "'";
  for (const char c : word.substr(0, kMost)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (word.size() > kMost ? "...'" : "'");
}

template <class T>
struct Named {
  std::string_view word;
  T value;
};

template <class T, size_t N>
Result<T, std::string> choose(const Named<T> (&names)[N], std::string_view word, const char* what) {
  std::vector<std::string> known;
  std::string list;
  for (size_t i = 0; i < N; ++i) {
    if (names[i].word == word) return names[i].value;
    known.emplace_back(names[i].word);
    list += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + known.back();
  }
  const std::string nearest = nearest_word(word, known);
  const std::string meant = nearest.empty() ? "" : ": did you mean " + quoted(nearest) + "?";
  return fail(quoted(word) + " is no " + what + ", which is " + list + meant);
}

enum class Statement : uint8_t { use, log, keep };
constexpr Named<Statement> kStatements[] = {
    {"use", Statement::use}, {"log", Statement::log}, {"keep", Statement::keep}};

constexpr Named<Use> kUses[] = {{"sdp", Use::sdp}, {"tcp", Use::tcp}, {"both", Use::both}};

// The last one is not in libsdp's grammar.
struct Roles {
  bool server;
  bool client;
};
constexpr Named<Roles> kRoles[] = {{"server", {true, false}},
                                   {"listen", {true, false}},
                                   {"client", {false, true}},
                                   {"connect", {false, true}},
                                   {"*", {true, true}}};

enum class LogPart : uint8_t { destination, min_level };
constexpr Named<LogPart> kLogParts[] = {{"destination", LogPart::destination},
                                        {"min-level", LogPart::min_level}};

using Destination = LogSettings::Destination;
constexpr Named<Destination> kDestinations[] = {{"stderr", Destination::standard_error},
                                                {"syslog", Destination::syslog},
                                                {"file", Destination::file}};

template <class T>
std::optional<T> number(std::string_view digits) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::optional<Ports> parse_ports(std::string_view text) {
  if (text == "*") return Ports{};
  const size_t dash = text.find('-');
  const auto first = number<uint16_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : number<uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return Ports{*first, *last};
}

// "[2001:db8::]/32" as "2001:db8::/32".
std::string without_brackets(std::string_view address) {
  std::string out{address};
  if (!out.starts_with('[')) return out;
  const size_t end = out.find(']');
  if (end == std::string::npos) return out;
  out.erase(end, 1);
  out.erase(0, 1);
  return out;
}

// Blanks may stand around the signs of ADDRESS:PORTS.
std::optional<std::string> joined(Words words) {
  const auto is_sign = [](char c) { return c == ':' || c == '/' || c == '-'; };
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty() && !is_sign(out.back()) && !is_sign(word.front())) return std::nullopt;
    out += word;
  }
  return out;
}

Result<Ok, std::string> add_rule(Words words, uint32_t line, Rules& rules) {
  constexpr size_t kLeast = 5;
  if (words.size() < kLeast) {
    return fail(std::string{
        "a rule is: use sdp|tcp|both server|client|* PROGRAM ADDRESS:PORTS, with * for any"});
  }
  Rule rule{
      .use = {}, .line = line, .program = std::string{words[3]}, .addresses = {}, .ports = {}};
  const auto use = choose(kUses, words[1], "way");
  if (!use) return fail(use.error());
  rule.use = *use;
  const auto roles = choose(kRoles, words[2], "role");
  if (!roles) return fail(roles.error());
  const auto place = joined(words.subspan(kLeast - 1));
  // The last colon: those before it are of IPv6.
  const size_t colon = place ? place->rfind(':') : std::string::npos;
  if (colon == std::string::npos) {
    return fail(quoted(place ? *place : words.back()) +
                " is no place: write ADDRESS:PORTS, such as 192.0.2.0/24:5001-5010, "
                "[2001:db8::]/32:80 or *:*");
  }
  const std::string address = without_brackets(std::string_view{*place}.substr(0, colon));
  const auto addresses = AddressRange::parse(address);
  if (!addresses) {
    return fail(
        quoted(address) +
        " is no address: write one of IPv4 or IPv6, with /BITS behind it for a network, or *");
  }
  rule.addresses = *addresses;
  const std::string_view port_text = std::string_view{*place}.substr(colon + 1);
  const auto ports = parse_ports(port_text);
  if (!ports) {
    return fail(quoted(port_text) + " is no port: write a number up to 65535, FIRST-LAST, or *");
  }
  rule.ports = *ports;
  if (roles->server) rules.add(SocketRole::server, rule);
  if (roles->client) rules.add(SocketRole::client, rule);
  return Ok{};
}

Result<Ok, std::string> set_destination(Words words, size_t& next, LogSettings& settings) {
  if (next == words.size())
    return fail(std::string{"behind destination stands stderr, syslog or file NAME"});
  const auto destination = choose(kDestinations, words[next++], "destination");
  if (!destination) return fail(destination.error());
  settings.destination = *destination;
  if (*destination != Destination::file) return Ok{};
  if (next == words.size()) return fail(std::string{"behind file stands its name"});
  settings.file = words[next++];
  return Ok{};
}

Result<Ok, std::string> set_min_level(Words words, size_t& next, LogSettings& settings) {
  const auto level = next < words.size() ? number<int>(words[next]) : std::nullopt;
  if (!level || *level < LogSettings::kLeastLevel || *level > LogSettings::kErrors) {
    return fail(
        std::string{"behind min-level stands a number from 1, everything, to 9, errors alone"});
  }
  ++next;
  settings.min_level = *level;
  return Ok{};
}

Result<Ok, std::string> set_log(Words words, LogSettings& log) {
  LogSettings settings = log;
  for (size_t next = 1; next < words.size();) {
    const auto part = choose(kLogParts, words[next], "part of log");
    if (!part) return fail(part.error());
    ++next;
    const auto set = *part == LogPart::destination ? set_destination(words, next, settings)
                                                   : set_min_level(words, next, settings);
    if (!set) return fail(set.error());
  }
  log = settings;
  return Ok{};
}

Result<Ok, std::string> add_kept(Words words, std::vector<std::string>& kept) {
  if (words.size() != 2) {
    return fail(std::string{"behind keep stands a program, whose connections outlive it"});
  }
  kept.emplace_back(words[1]);
  return Ok{};
}

Result<Ok, std::string> take(Words words, uint32_t line, Configuration& configuration) {
  const auto statement = choose(kStatements, words[0], "statement");
  if (!statement) return fail(statement.error());
  switch (*statement) {
    case Statement::use:
      return add_rule(words, line, configuration.rules);
    case Statement::keep:
      return add_kept(words, configuration.kept);
    case Statement::log:
      break;
  }
  return set_log(words, configuration.log);
}

}  // namespace

bool Configuration::keeps(const char* program) const {
  static constexpr const char* kUsual = "ssh";
  const auto fits = [program](const std::string& p) { return fnmatch(p.c_str(), program, 0) == 0; };
  return kept.empty() ? std::string_view{program} == kUsual
                      : std::any_of(kept.begin(), kept.end(), fits);
}

Configuration parse(std::string_view text) {
  Configuration configuration;
  auto& complaints = configuration.complaints;
  for (uint32_t line = 1; !text.empty(); ++line) {
    const size_t size = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (words.empty()) continue;
    const auto taken = take(words, line, configuration);
    if (taken || complaints.size() > kMostComplaints) continue;
    complaints.push_back({line, complaints.size() < kMostComplaints
                                    ? taken.error()
                                    : "this line and perhaps more are not understood either"});
  }
  return configuration;
}

}  // namespace weft::sdp
