#include "drive/datagram_driver.h"

#include <algorithm>
#include <utility>

#include "drive/rd_link.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using port::DatagramPort;

// Until what was left for want of memory is tried again.
constexpr Duration kNextTry = 10ms;
constexpr Duration kLeaving = 1ms;  // from its deadline until a datagram has left
// For a program to post receives.
constexpr Duration kReceiveWait = 10ms;
// System calls in one visit: four trains, or as many small datagrams.
constexpr size_t kMostReceives = 64;

static_assert(wdp::Train::kMostBytes <= DatagramPort::kMostBytes &&
              wdp::Train::kMostBytesIpv6 <= DatagramPort::kMostBytesIpv6 &&
              wdp::Train::kMostDatagrams <= DatagramPort::kMostSegments);

}  // namespace

// --- somebody to answer for the socket

Result<wdp::WdpSocketOwner::Callee, wire::RejReason> DatagramOwner::called(Token&, DatagramDriver&,
                                                                           const wire::WdpCtl&,
                                                                           const wdp::Endpoint&) {
  return fail(wire::RejReason::qpn_unknown);
}

std::optional<wire::RejReason> DatagramOwner::requested(Token&, DatagramDriver&,
                                                        const wdp::RequestKey&,
                                                        const wdp::Handshake&) {
  return wire::RejReason::no_listener;
}

void DatagramOwner::answered(Token&, DatagramDriver&, SessionToken, const wdp::Handshake&) {}

void DatagramOwner::start_came(Token&, DatagramDriver&, const wdp::RdStart&) {}

bool DatagramOwner::group_heard(Token&, DatagramDriver&, const Gid&) {
  return false;
}

std::optional<wire::RejReason> DatagramDriver::Visit::requested(const wdp::RequestKey& key,
                                                                const wdp::Handshake& handshake) {
  if (driver_.owner_ == nullptr) return wire::RejReason::no_listener;
  return driver_.owner_->requested(token_, driver_, key, handshake);
}

Result<wdp::WdpSocketOwner::Callee, wire::RejReason> DatagramDriver::Visit::called(
    const wire::WdpCtl& req, const wdp::Endpoint& from) {
  if (driver_.owner_ == nullptr) return fail(wire::RejReason::qpn_unknown);
  return driver_.owner_->called(token_, driver_, req, from);
}

wdp::RdChannel* DatagramDriver::Visit::channel_called() {
  if (driver_.owner_ == nullptr) return nullptr;
  return &RdLink::start(token_, driver_).channel();
}

void DatagramDriver::Visit::answered(SessionToken question, const wdp::Handshake& handshake) {
  if (driver_.owner_ == nullptr) return;
  count_failed_call(handshake, token_.runtime().counters());
  driver_.owner_->answered(token_, driver_, question, handshake);
}

// --- its life

DatagramDriver::DatagramDriver(Token& token, DatagramOwner& owner,
                               std::unique_ptr<DatagramPort> socket,
                               const std::optional<Gid>& group)
    : owner_(&owner),
      socket_(std::move(socket)),
      properties_(socket_->properties()),
      group_(group),
      random_(token.runtime().random(token)),
      wdp_socket_(random_, token.now()),
      output_(*socket_, properties_, wdp_socket_, current_, TrainPool::of(token)) {}

DatagramDriver::~DatagramDriver() = default;

DatagramDriver& DatagramDriver::start(Token& token, DatagramOwner& owner,
                                      std::unique_ptr<DatagramPort> socket,
                                      const std::optional<Gid>& group) {
  auto owned =
      std::unique_ptr<DatagramDriver>{new DatagramDriver(token, owner, std::move(socket), group)};
  DatagramDriver& driver = *owned;
  token.runtime().add(token, std::move(owned), driver.properties_.fd, true, false);
  return driver;
}

void DatagramDriver::schedule(DatagramSender& sender) {
  output_.schedule(sender);
  settling_.push_back(sender);
}

void DatagramDriver::posted(Token& token, DatagramSender& sender) {
  schedule(sender);
  // The first since the program's last poll goes out at once; those behind it are a burst.
  const uint64_t polls = token.runtime().counters().polls.value();
  if (std::exchange(posted_at_poll_, polls) == polls && token.runtime().gather(token, *this))
    return;
  settle(token);
}

void DatagramDriver::remove(Token& token, DatagramSender& sender) {
  if (pause_.sender == &sender) {
    pause_ = {.begun = true, .until = token.now()};
    token.runtime().set_deadline(token, *this, pause_.until);
  }
  current_.forget(sender);
  output_.remove(sender);
  sender.ListHook<SettlingTag>::unlink();
}

void DatagramDriver::leave(Token& token, wdp::UcConnection& connection) {
  wdp_socket_.remove(connection, token.now());
  --links_;
  if (owner_ == nullptr && !inside_) end_if_unused(token);
}

void DatagramDriver::leave(Token& token, wdp::RdChannel& channel) {
  wdp_socket_.remove(channel, token.now());
  --links_;
  if (owner_ == nullptr && !inside_) end_if_unused(token);
}

bool DatagramDriver::rest(Token& token, wdp::RdChannel& channel) {
  if (!wdp_socket_.channels().rest(channel, token.now())) return false;
  --links_;
  return true;
}

// --- reliable datagrams

void DatagramDriver::enable_channels(uint16_t port, bool crc, bool starts) {
  // The kernel tells twice of what it lets in; and several peers send at once.
  wdp_socket_.channels().enable(
      {.own_port = port, .crc = crc, .window = properties_.receive_buffer / 4, .starts = starts});
}

// Where there is no memory for one, its peer asks again.
void DatagramDriver::tell_starts(Token& token) {
  while (owner_ != nullptr) {
    const auto start = wdp_socket_.channels().take_start();
    if (!start) return;
    owner_->start_came(token, *this, *start);
  }
}

void DatagramDriver::open_channel(Token& token, const wdp::Path& path) {
  if (wdp_socket_.channels().find(path) != nullptr) return;
  RdLink& link = RdLink::start(token, *this);
  const auto ends = wdp::ChannelEnds::of(path);
  if (wdp_socket_.channels().resting().has(ends)) {
    wdp_socket_.resume(ends, link.channel(), token.now());
  } else {
    const Qpn port = make_qpn(path.to.port, wire::kPortIndex);
    wdp_socket_.connect(link.channel(), path, port, token.now());
  }
  schedule(link);
}

void DatagramDriver::channels_resume(Token& token, uint8_t index) {
  if (!wdp_socket_.channels().waits_for(index)) return;
  {
    const Visit visit{*this, token};
    wdp_socket_.channels().receives_posted(index);
    current_.set(nullptr);
  }
  settle(token);
}

void DatagramDriver::close_socket() {
  socket_->close();
  open_ = false;
}

// The peers of those at rest that may speak without asking are told, too, as far as there is memory
// for it.
void DatagramDriver::end_channels(Token& token) {
  Visit visit{*this, token};
  wdp::RdChannels& channels = wdp_socket_.channels();
  try {
    const Time then = token.now() - 2 * wdp::kShortRest;
    while (const auto ends = channels.resting().active_since(then)) {
      if (wdp_socket_.wake(*ends, token.now(), visit) == nullptr) break;
    }
  } catch (const std::bad_alloc&) {
    // They find out when they have something to say.
  }
  channels.each([&](wdp::RdChannel& channel) { channel.close(token.now()); });
  current_.set(nullptr);
}

void DatagramDriver::close_channels(Token& token) {
  end_channels(token);
  settle(token);
}

void DatagramDriver::close(Token& token) {
  end_channels(token);
  owner_ = nullptr;
  settle(token);
  if (!inside_) end_if_unused(token);
}

void DatagramDriver::end_if_unused(Token& token) {
  if (owner_ != nullptr || links_ != 0 || !open_) return;
  overruns_.poll(*socket_, token.runtime().counters());
  token.runtime().remove(token, *this);
  close_socket();
}

// --- what the engine calls

void DatagramDriver::on_ready(Token& token, bool readable, bool writable) {
  if (writable && output_.unblock()) token.runtime().want_write(token, *this, false);
  if (readable && pause_.lasts(token.now())) {
    // Most programs post receives before anything more comes. Another one is told of it once.
    token.runtime().want_read(token, *this, false);
  } else if (readable) {
    receive(token, kMostReceives);
  }
  settle(token);
}

// The next look comes soon: another system call only to learn that there is no more is for those
// who are told by epoll.
bool DatagramDriver::try_receive(Token& token) {
  const bool moved = receive(token, 1) > 0;
  // What a fault holds back has come and has a deadline, which nothing else would see to.
  if (!moved && socket_->held_until().is_never()) return false;
  settle(token);
  return moved;
}

void DatagramDriver::on_deadline(Token& token) {
  {
    Visit visit{*this, token};
    wdp_socket_.tick(token.now(), visit);
  }
  overruns_.poll_if_due(*socket_, token.now(), token.runtime().counters());
  if (token.now() >= pause_.until) wait_no_longer(token);
  if (token.now() >= socket_->held_until()) {
    receive(token, kMostReceives);
  }
  settle(token);
}

void DatagramDriver::port_closed(Token& token, SessionToken question) {
  {
    Visit visit{*this, token};
    wdp_socket_.port_closed(question, token.now(), visit);
  }
  settle(token);
}

// The sender that was being served is left in the middle, and ends what it has to. What was only
// to be sent is tried again.
void DatagramDriver::on_no_memory(Token& token) {
  inside_ = false;
  token.runtime().set_deadline(token, *this, token.now() + kNextTry);
  output_.abandon_filling();
  if (DatagramSender* sender = current_.take()) sender->on_no_memory(token);
}

void DatagramDriver::settle(Token& token) {
  if (inside_ || !open_) return;
  token.runtime().guard(
      token, [&] { settle_now(token); }, [&] { on_no_memory(token); });
}

void DatagramDriver::settle_now(Token& token) {
  {
    const Visit visit{*this, token};
    tell_starts(token);
    output_.send(token, *this, settling_);
    while (!settling_.empty()) {
      // Each once. A sender that has more to say has its turn in the next round.
      while (DatagramSender* s = settling_.pop_front()) {
        current_.call(*s, [&] { s->settled(token); });
      }
      output_.send(token, *this, settling_);
    }
    drops_.publish(wdp_socket_.drops(), token.runtime().counters());
    channel_drops_.publish(wdp_socket_.channels().drops(), token.runtime().counters());
    rejections_.publish(wdp_socket_.rejections(), token.runtime().counters());
    Time held = socket_->held_until();
    if (pause_.begun) {
      if (pause_.until.is_never()) pause_.until = token.now() + kReceiveWait;
      // What has come and is held back is not taken before the socket is read again.
      held = std::max(held, pause_.until);
    }
    token.runtime().set_deadline(
        token, *this,
        std::min({wdp_socket_.deadline(), pause_.until, held, output_.due(), overruns_.due()}));
    // What a fault holds back is on its way: it does not end with the process.
    if (!held.is_never()) token.runtime().closes_at(token, held + kLeaving);
  }
  end_if_unused(token);
}

}  // namespace weft::drive
