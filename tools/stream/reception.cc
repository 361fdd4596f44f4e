// How a receiver receives its guests: the threads of control connections.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "bench/failure.h"
#include "stream/receiver.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

constexpr int kHelloMs = 5'000;
constexpr int kDoorMs = 100;

}  // namespace

void Receiver::listen() {
  while (!stop_) {
    pollfd p{.fd = door_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, kDoorMs) <= 0) continue;
    port::Fd fd{::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd.valid()) continue;
    const std::lock_guard lock{mutex_};
    Visit& visit = visits_.emplace_back();
    visit.control = std::make_unique<Control>(std::move(fd));
    visit.thread = std::thread{[this, &visit] {
      serve(*visit.control);
      visit.control->shut();
      visit.over = true;
    }};
  }
}

void Receiver::serve(Control& control) {
  try {
    const nlohmann::json hello = control.receive(kHelloMs);
    try {
      serve_sender(control, hello);
    } catch (const std::exception& error) {
      control.send({{"error", error.what()}});
    }
  } catch (const std::exception&) {
    // The guest is gone, and with it the one who would want to know.
  }
}

Guest Receiver::guest_of(const nlohmann::json& hello) const {
  if (hello.value("weft_stream", 0) != kControlVersion) {
    throw bench::Failure{"this receiver speaks version 1 of weft stream"};
  }
  const nlohmann::json own = options_.inlet.transport;
  if (hello.at("transport") != own) {
    throw bench::Failure{"this receiver takes --transport " + own.get<std::string>()};
  }
  if (hello.at("shape").get<Shape>() != options_.ring.shape) {
    throw bench::Failure{"this receiver takes packets of another shape: " +
                         nlohmann::json(options_.ring.shape).dump()};
  }
  Guest guest;
  guest.group = hello.value("group", 1U);
  guest.ends = hello.at("ends");
  std::set<uint32_t> seen;
  for (const auto& stream : hello.at("streams")) {
    const auto i = stream.get<uint32_t>();
    if (i >= lanes_.size()) {
      throw bench::Failure{"this receiver takes " + std::to_string(lanes_.size()) + " streams"};
    }
    if (!seen.insert(i).second) throw bench::Failure{"a stream is named twice"};
    guest.streams.push_back(i);
  }
  if (guest.streams.empty() || hello.at("first").size() != guest.streams.size() ||
      guest.ends.size() != guest.streams.size()) {
    throw bench::Failure{"a hello with holes"};
  }
  return guest;
}

std::vector<uint64_t> Receiver::first_numbers(const Guest& guest, const nlohmann::json& hello) {
  std::vector<uint64_t> first;
  const std::lock_guard lock{mutex_};
  for (size_t i = 0; i < guest.streams.size(); ++i) {
    const uint32_t stream = guest.streams[i];
    const uint64_t wish = hello["first"][i];
    // As Ledger::may_begin(), which is of another thread.
    first.push_back(wish < bottom_[stream] ? wish : std::max(wish, reachable_[stream]));
  }
  return first;
}

template <class Event>
void Receiver::post(std::vector<std::unique_ptr<Event>>& queue, std::unique_ptr<Event> event) {
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    queue.push_back(std::move(event));
  }
  const uint64_t one = 1;
  (void)!::write(waker_.get(), &one, sizeof one);
}

void Receiver::serve_sender(Control& control, const nlohmann::json& hello) {
  auto event = std::make_unique<Begin>();
  Guest& guest = event->guest;
  guest = guest_of(hello);
  const uint64_t session = guest.session = ++sessions_;
  guest.own_address = control.own_address();
  event->first = first_numbers(guest, hello);
  for (size_t i = 0; i < guest.streams.size(); ++i) {
    const auto& told = hello.contains("resumed_from") ? hello["resumed_from"][i] : nullptr;
    event->resumed_from.push_back(told.is_null() ? std::nullopt : std::optional<uint64_t>(told));
  }
  const nlohmann::json ends = inlet_->offer(guest);
  control.send({{"first", event->first},
                {"packets_per_block", ring_.spec().packets_per_block},
                {"blocks", ring_.spec().blocks},
                {"slot_bytes", ring_.spec().slot_bytes},
                {"block_bytes", ring_.header().block_bytes},
                {"ends", ends}});
  inlet_->connect(guest);
  (void)control.receive(kHelloMs);
  std::future<void> begun = event->done.get_future();
  post(begins_, std::move(event));
  begun.get();
  control.send({{"go", true}});

  auto end = std::make_unique<End>();
  end->session = session;
  std::future<nlohmann::json> counts = end->counts.get_future();
  try {
    end->end = control.receive(-1).at("end").get<std::vector<uint64_t>>();
  } catch (const std::exception&) {
    // It is gone, maybe to come again.
    end->end.clear();
  }
  post(ends_, std::move(end));
  control.send({{"counts", counts.get()}});
}

}  // namespace weft::stream
