// How a receiver takes senders: the threads of control connections.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "cli/stop.h"
#include "kit/failure.h"
#include "kit/json_numbers.h"
#include "stream/receiver.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

constexpr int kHelloMs = 5'000;
constexpr int kListenMs = 100;
constexpr size_t kMostConnections = 64;  // and one for each stream

uint64_t wish_of(const nlohmann::json& number) {
  return kit::number_from(number, "first", kMostNumber - 1);
}

// What a shape has, as the option that says so: "--bits 8", "--number 0:8:be:16:1".
std::string option_of(Format format, const std::string& name, const nlohmann::json& value) {
  std::string option = "--" + (name == "header" ? "header-bytes" : name);
  std::replace(option.begin(), option.end(), '_', '-');
  if (value.is_string()) return option + " " + value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? option : "no " + option;
  if (!value.is_object()) return option + " " + value.dump();
  const Place place = value;
  if (!place.told()) return "no " + option;
  return option + " " + text_of(format, place);
}

// Where two shapes differ, as options of either side: "--bits 8", "--bits 16".
std::pair<std::string, std::string> different_options(const Shape& asked, const Shape& sent) {
  if (asked.format != sent.format) {
    return {fmt::format("--format {}", name_of(asked.format)),
            fmt::format("--format {}", name_of(sent.format))};
  }
  const Shape ours = asked.closed_by(sent).essentials();
  const Shape theirs = sent.essentials();
  const auto options = [](const nlohmann::json& one, const nlohmann::json& other) {
    std::string text;
    for (const auto& [name, value] : one.items()) {
      if (other.at(name) == value) continue;
      // 0: each packet says its clock.
      if (name == "clock" && (value == 0 || other.at(name) == 0)) continue;
      text += (text.empty() ? "" : " ") + option_of(one.at("format"), name, value);
    }
    return text;
  };
  return {options(ours, theirs), options(theirs, ours)};
}

// A sender is not taken, and is told why. `again`: it may come again.
struct Refusal {
  std::string reason;
  bool again;
};
enum class Refused : uint8_t { for_good, for_now };

// Where `step` throws, the sender is refused.
template <typename Step>
auto or_refuse(Refused how, Step step) {
  try {
    return step();
  } catch (const std::exception& error) {
    throw Refusal{error.what(), how == Refused::for_now};
  }
}

}  // namespace

void Receiver::listen() {
  bool told = false;  // that a connection cannot be accepted
  while (!stop_) {
    pollfd p{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, kListenMs) <= 0) continue;
    port::Fd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd.valid()) {
      if (errno == EAGAIN || errno == EINTR) continue;
      // Out of descriptors, maybe: the connection waits until there is one.
      if (!std::exchange(told, true)) {
        report_.tell({{"event", "unaccepted"}, {"reason", std::strerror(errno)}});
      }
      ::poll(nullptr, 0, kListenMs);
      continue;
    }
    told = false;
    const std::lock_guard lock{mutex_};
    // Too many are closed at once; a sender tries again.
    if (connections_.size() >= kMostConnections + lanes_.size()) continue;
    Connection& connection = connections_.emplace_back();
    try {
      connection.control = std::make_unique<Control>(std::move(fd));
      connection.control->notice_when_gone();
      connection.thread = std::thread{[this, &connection] {
        serve(*connection.control);
        connection.control->shut();
        connection.over = true;
      }};
    } catch (const std::system_error&) {
      connections_.pop_back();
    }
  }
}

void Receiver::serve(Control& control) {
  try {
    serve_sender(control);
  } catch (const Refusal& refusal) {
    refuse(control, refusal.reason, refusal.again);
  } catch (const std::exception&) {
    // The sender is gone, and with it the one who would want to know.
  }
}

void Receiver::refuse(Control& control, const std::string& reason, bool again) {
  const bool ending = stop_ || cli::stop_asked();
  try {
    if (!ending) tell_of_refusal(control.peer_address(), reason);
    control.send({{"error", ending ? "it is about to end" : reason}, {"again", ending || again}});
  } catch (const kit::Failure&) {
    // It did not wait for that.
  }
}

// Once: a sender that is refused may try again and again.
void Receiver::tell_of_refusal(const std::string& sender, const std::string& reason) {
  {
    const std::lock_guard lock{mutex_};
    if (std::exchange(last_refusal_, sender + reason) == sender + reason) return;
  }
  report_.tell({{"event", "refused"}, {"sender", sender}, {"reason", reason}});
}

ConnectedSender Receiver::sender_of(const nlohmann::json& hello) const {
  if (const int version = hello.value("weft_stream", 0); version != kControlVersion) {
    throw kit::Failure{
        fmt::format("the receiver speaks version {} of weft stream, the sender version {}. Run the "
                    "same version of weft on both sides",
                    kControlVersion, version)};
  }
  if (!options_.inlet.circuits.empty()) {
    throw kit::Failure{
        "the receiver has --static, which takes circuits alone. Start it without --static"};
  }
  const nlohmann::json own = options_.inlet.transport;
  if (hello.at("transport") != own) {
    throw kit::Failure{
        fmt::format("the receiver has --transport {}, the sender --transport {}. Give both sides "
                    "the same option",
                    own.get<std::string>(), hello.at("transport").get<std::string>())};
  }
  const Shape& asked = options_.ring.shape;
  const Shape sent = hello.at("shape");
  if (!asked.takes(sent)) {
    const auto [ours, theirs] = different_options(asked, sent);
    throw kit::Failure{fmt::format(
        "the receiver has {}, the sender {}. Give both sides the same options", ours, theirs)};
  }
  ConnectedSender sender;
  sender.shape = asked.closed_by(sent);
  sender.group =
      static_cast<uint32_t>(std::max<uint64_t>(kit::number_or(hello, "group", UINT32_MAX, 1), 1));
  sender.ends = hello.at("ends");
  std::set<uint32_t> seen;
  for (const auto& stream : hello.at("streams")) {
    const auto i = static_cast<uint32_t>(kit::number_from(stream, "streams", UINT32_MAX));
    if (i >= lanes_.size()) {
      throw kit::Failure{fmt::format(
          "the receiver has --streams {}, and the sender has a stream {}. Raise --streams of the "
          "receiver, or lower --streams or --first-stream of the sender",
          lanes_.size(), i)};
    }
    if (!seen.insert(i).second) throw kit::Failure{"a stream is named twice"};
    sender.streams.push_back(i);
  }
  if (sender.streams.empty() || hello.at("first").size() != sender.streams.size() ||
      !sender.ends.is_array() || sender.ends.size() != sender.streams.size() ||
      (hello.contains("resumed_from") &&
       hello.at("resumed_from").size() != sender.streams.size())) {
    throw kit::Failure{"a hello with holes"};
  }
  return sender;
}

void Receiver::post(Event event) {
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    events_.push_back(std::move(event));
    posted_ = true;
  }
  const uint64_t one = 1;
  (void)!::write(waker_.get(), &one, sizeof one);
}

std::unique_ptr<Receiver::Begin> Receiver::begin_of(Control& control, const nlohmann::json& hello) {
  auto event = std::make_unique<Begin>();
  ConnectedSender& sender = event->sender;
  sender = sender_of(hello);
  sender.session = ++sessions_;
  sender.address = control.peer_address();
  sender.own_address = control.own_address();
  event->control = &control;
  event->fixed = hello.value("fixed", false);
  for (size_t i = 0; i < sender.streams.size(); ++i) {
    const nlohmann::json told =
        hello.contains("resumed_from") ? hello.at("resumed_from").at(i) : nlohmann::json{};
    event->wishes.push_back(wish_of(hello.at("first").at(i)));
    event->anew.push_back(hello.contains("anew") && hello.at("anew").at(i).get<bool>());
    event->resumed_from.push_back(told.is_null() ? std::nullopt
                                                 : std::optional<uint64_t>(wish_of(told)));
  }
  return event;
}

void Receiver::serve_sender(Control& control) {
  const nlohmann::json hello = control.receive(kHelloMs);
  auto event = or_refuse(Refused::for_good, [&] { return begin_of(control, hello); });
  ConnectedSender& sender = event->sender;
  const uint64_t session = sender.session;
  // What a receiver cannot do for a sender that it takes, it may be able to do later.
  const nlohmann::json ends = or_refuse(Refused::for_now, [&] { return inlet_->offer(sender); });
  control.send({{"packets_per_block", ring_.spec().packets_per_block},
                {"blocks", ring_.spec().blocks},
                {"hold", ordered(options_.inlet.transport) ? 0 : options_.hold},
                {"slot_bytes", ring_.spec().slot_bytes},
                {"block_bytes", ring_.header().block_bytes},
                {"ends", ends}});
  or_refuse(Refused::for_now, [&] { inlet_->connect(sender); });
  (void)control.receive(kHelloMs);
  std::future<std::vector<uint64_t>> first = event->first.get_future();
  post(std::move(event));
  const auto agreed = or_refuse(Refused::for_good, [&] { return first.get(); });

  // From here on the session runs: whatever happens, its end has to be posted.
  auto end = std::make_unique<End>();
  end->session = session;
  std::future<nlohmann::json> counts = end->counts.get_future();
  try {
    control.send({{"go", true}, {"first", agreed}});
    const nlohmann::json word = control.receive(-1);
    end->end = kit::numbers_at(word, "end", UINT64_MAX);
    if (word.contains("goes_on")) end->goes_on = kit::numbers_at(word, "goes_on", UINT64_MAX);
  } catch (const std::exception&) {
    // It is gone, maybe to come again.
    end->end.clear();
  }
  post(std::move(end));
  control.send({{"counts", counts.get()}});
}

}  // namespace weft::stream
