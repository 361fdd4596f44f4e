#include "engine/datagram_driver.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "engine/uc_link.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
using port::UdpSocket;

// Bytes that come in before the other sockets have their turn, and system calls for them: four
// trains, or as many small datagrams.
constexpr size_t kBudget = size_t{256} << 10;
constexpr size_t kMostReceives = 64;
// Until what was left for want of memory is tried again.
constexpr Duration kNextTry = 10ms;
constexpr Duration kLeaving = 1ms;  // from its deadline until a datagram has left
// Datagrams above this size that come alone, as on loopback, are worth two system calls: they go
// straight to their places. Those of trains are not (datapath.md R7).
constexpr size_t kLarge = 16'000;
// Datagrams for which nobody looks after one that could not go to its place at once.
constexpr unsigned kLooksOff = 64;
// For a program to post receives.
constexpr Duration kReceiveWait = 10ms;

static_assert(wdp::Train::kMostBytes <= UdpSocket::kMostBytes &&
              wdp::Train::kMostBytesIpv6 <= UdpSocket::kMostBytesIpv6 &&
              wdp::Train::kMostDatagrams <= UdpSocket::kMostSegments);

}  // namespace

wdp::UdReception reception_of(const UdpSocket::Received& r) {
  return {.from = {.address = r.from.gid(), .port = r.from.port()},
          .to = r.to,
          .traffic_class = r.tos,
          .hop_limit = r.hop_limit != 0 ? r.hop_limit : uint8_t{64}};
}

void count_overruns(const UdpSocket& socket, uint32_t& counted, stats::EngineCounters& counters) {
  const uint32_t all = socket.overruns();
  if (all != counted) counters.socket_overruns.add(all - std::exchange(counted, all));  // it wraps
}

// --- somebody to answer for the socket

Result<wdp::PortOwner::Callee, wire::RejReason> DatagramOwner::called(Token&, DatagramDriver&,
                                                                      const wire::WdpCtl&,
                                                                      const wdp::Endpoint&) {
  return fail(wire::RejReason::qpn_unknown);
}

std::optional<wire::RejReason> DatagramOwner::requested(Token&, DatagramDriver&,
                                                        const wdp::Demux::RequestKey&,
                                                        const wdp::Handshake&) {
  return wire::RejReason::no_listener;
}

void DatagramOwner::answered(Token&, DatagramDriver&, SessionToken, const wdp::Handshake&) {}

std::optional<wire::RejReason> DatagramDriver::requested(const wdp::Demux::RequestKey& key,
                                                         const wdp::Handshake& handshake) {
  if (owner_ == nullptr) return wire::RejReason::no_listener;
  return owner_->requested(*token_, *this, key, handshake);
}

Result<wdp::PortOwner::Callee, wire::RejReason> DatagramDriver::called(const wire::WdpCtl& req,
                                                                       const wdp::Endpoint& from) {
  if (owner_ == nullptr) return fail(wire::RejReason::qpn_unknown);
  return owner_->called(*token_, *this, req, from);
}

void DatagramDriver::answered(SessionToken question, const wdp::Handshake& handshake) {
  if (owner_ != nullptr) owner_->answered(*token_, *this, question, handshake);
}

// --- its life

DatagramDriver::DatagramDriver(Token& token, DatagramOwner& owner, UdpSocket socket)
    : owner_(&owner),
      socket_(std::move(socket)),
      port_(static_cast<wdp::PortOwner&>(*this), random_, token.now()) {}

DatagramDriver::~DatagramDriver() = default;

DatagramDriver& DatagramDriver::start(Token& token, DatagramOwner& owner, UdpSocket socket) {
  auto owned = std::unique_ptr<DatagramDriver>{new DatagramDriver(token, owner, std::move(socket))};
  DatagramDriver& driver = *owned;
  token.engine().add(token, std::move(owned), driver.socket_.fd(), true, false);
  return driver;
}

void DatagramDriver::set_interface(const Gid& local, uint32_t interface) {
  if (!local.is_ipv4() && interface != 0) interfaces_[local] = interface;
}

uint32_t DatagramDriver::interface_of(const Gid& local, const Gid& remote) const {
  const bool group = !remote.is_ipv4() && remote.raw[0] == 0xff;
  if (!local.is_link_local() && !group) return 0;
  const auto it = interfaces_.find(local);
  return it != interfaces_.end() ? it->second : 0;
}

void DatagramDriver::look_at(DatagramSpeaker& speaker) {
  speaking_.push_back(speaker);
  settling_.push_back(speaker);
}

void DatagramDriver::posted(Token& token, DatagramSpeaker& speaker) {
  look_at(speaker);
  // The first since the program's last poll goes out at once; those behind it are a burst.
  const uint64_t polls = token.engine().counters().polls.value();
  if (std::exchange(posted_at_poll_, polls) == polls && token.engine().gather(token, *this)) return;
  settle(token);
}

void DatagramDriver::let_go(Token& token, DatagramSpeaker& speaker, bool leaves) {
  if (filler_ == &speaker) train_.detach();
  if (!leaves) return;
  if (waits_for_ == &speaker) {
    waits_for_ = nullptr;
    waits_until_ = token.now();
    token.engine().set_deadline(token, *this, waits_until_);
  }
  if (filler_ == &speaker) filler_ = nullptr;
  if (current_ == &speaker) current_ = nullptr;
  speaker.ListHook<SpeakingTag>::unlink();
  speaker.ListHook<SettlingTag>::unlink();
  speaker.ListHook<PacedTag>::unlink();
}

void DatagramDriver::leave(Token& token, wdp::UcConnection& connection) {
  port_.remove(connection, token.now());
  links_.erase(&connection);
  if (owner_ == nullptr && !inside_) end_if_unused(token);
}

void DatagramDriver::close(Token& token) {
  owner_ = nullptr;
  if (!inside_) end_if_unused(token);
}

void DatagramDriver::end_if_unused(Token& token) {
  if (owner_ != nullptr || !links_.empty() || !socket_.valid()) return;
  token.engine().remove(token, *this);
  socket_.close();
}

// --- what the engine calls

void DatagramDriver::on_ready(Token& token, bool readable, bool writable) {
  if (writable && std::exchange(blocked_, false)) token.engine().want_write(token, *this, false);
  if (readable) receive(token, kMostReceives);
  settle(token);
}

// The next look comes soon: another system call only to learn that there is no more is for those
// who are told by epoll.
bool DatagramDriver::try_receive(Token& token) {
  const bool moved = receive(token, 1) > 0;
  // What a fault holds back has come and has a deadline, which nothing else would see to.
  if (!moved && socket_.held_until().is_never()) return false;
  settle(token);
  return moved;
}

void DatagramDriver::on_deadline(Token& token) {
  {
    const Visit visit{*this, token};
    port_.tick(token.now());
  }
  if (token.now() >= waits_until_) wait_no_longer(token);
  if (token.now() >= socket_.held_until()) {
    socket_.release_held();
    receive(token, kMostReceives);
  }
  settle(token);
}

void DatagramDriver::on_memory_retired(Token&) {
  train_.detach();
}

// Whoever was being served is left in the middle, and knows best what to end for it. What was only
// to be sent is tried again.
void DatagramDriver::on_no_memory(Token& token) {
  inside_ = false;
  token.engine().set_deadline(token, *this, token.now() + kNextTry);
  if (std::exchange(filling_, false)) {
    train_.clear();
    filler_ = nullptr;
    sent_ = 0;
  }
  DatagramSpeaker* speaker = std::exchange(current_, nullptr);
  if (speaker != nullptr) speaker->on_no_memory(token);
}

void DatagramDriver::settle(Token& token) {
  if (inside_ || !socket_.valid()) return;
  token.engine().guard(
      token, [&] { settle_now(token); }, [&] { on_no_memory(token); });
}

void DatagramDriver::settle_now(Token& token) {
  {
    const Visit visit{*this, token};
    send(token);
    while (!settling_.empty()) {
      // Each once; who has something to say after that has its turn in the next round.
      while (DatagramSpeaker* s = settling_.pop_front()) {
        current_ = s;
        s->settled(token);
        current_ = nullptr;
      }
      send(token);
    }
    drops_.carry(port_.drops(), token.engine().counters());
    const Time held = socket_.held_until();
    token.engine().set_deadline(token, *this,
                                std::min({port_.deadline(), waits_until_, held, paced_until_}));
    // What a fault holds back is on its way: it does not end with the process.
    if (!held.is_never()) token.engine().closes_at(token, held + kLeaving);
  }
  end_if_unused(token);
}

// --- datagrams in

// Returns how often something came; `calls`: of the system, at most.
size_t DatagramDriver::receive(Token& token, size_t calls) {
  if (!waits_until_.is_never() && token.now() < waits_until_) return 0;
  const Visit visit{*this, token};
  size_t moved = 0;
  size_t came = 0;
  for (; calls > 0 && moved < kBudget && waits_until_.is_never(); --calls) {
    const auto bytes = receive_one(token);
    if (!bytes) {
      token.engine().counters().receives_empty.add();
      token.engine().moved(token, moved);
      return came;
    }
    if (*bytes == 0) continue;
    ++came;
    moved += *bytes;
  }
  token.engine().moved(token, moved);
  if ((calls == 0 && came <= 1) || !waits_until_.is_never()) return came;
  token.engine().again(token, *this);
  return came;
}

// Nothing: there was none. 0: what came has no bytes, or it was only the news that some datagram of
// ours could not be delivered.
std::optional<size_t> DatagramDriver::receive_one(Token& token) {
  auto& counters = token.engine().counters();
  if (large_ && socket_.can_look() && (no_looks_ == 0 || --no_looks_ == 0)) {
    std::array<std::byte, wire::WdpData::kLook> front;
    const auto next = socket_.look(front);
    counters.receive_calls.add();
    if (next.would_block) return {};
    if (next.error != 0) return 0;
    PieceList places;
    const Bytes seen = Bytes{front}.first(std::min(next.bytes, front.size()));
    if (auto* connection = direct_for(seen, next, places)) {
      return receive_in_place(token, *connection, places, seen);
    }
    no_looks_ = kLooksOff;
  }
  // Afresh each time, for what was delivered may have used it.
  const MutableBytes bounce = token.engine().bounce(token);
  const auto r = socket_.receive(bounce);
  counters.receive_calls.add();
  if (r.would_block) return {};
  if (r.error != 0) return 0;
  large_ = r.bytes >= kLarge && r.segment == r.bytes;
  counters.bytes_received_copied.add(r.bytes);
  deliver(token, bounce.first(std::min(r.bytes, bounce.size())), r);
  return r.bytes;
}

// Whom a datagram is for, and where its payload belongs, when it can go there at once.
wdp::UcConnection* DatagramDriver::direct_for(Bytes front, const UdpSocket::Received& r,
                                              PieceList& places) const {
  if (r.segment != r.bytes) return nullptr;
  const auto common = wire::WdpCommon::parse(front);
  if (!common.ok()) return nullptr;
  const auto found = port_.demux().find(*common, {r.from.gid(), r.from.port()});
  if (!found.ok() || *found == nullptr || !(*found)->direct(front, r.bytes, places)) return nullptr;
  return *found;
}

// The datagram that was looked at, for nobody else reads the socket.
size_t DatagramDriver::receive_in_place(Token& token, wdp::UcConnection& connection,
                                        const PieceList& places, Bytes seen) {
  std::array<std::byte, wire::WdpData::kSize> header;
  std::array<IoVec, 1 + PieceList::kMost> pieces;
  pieces[0] = {header.data(), header.size()};
  std::copy(places.pieces().begin(), places.pieces().end(), pieces.begin() + 1);
  const auto r = socket_.receive_into({pieces.data(), 1 + places.pieces().size()});
  auto& counters = token.engine().counters();
  counters.receive_calls.add();
  // EFAULT: the program has unmapped its region. The datagram is lost.
  if (r.would_block || r.error != 0) return 0;
  if (r.bytes != header.size() + places.bytes() ||
      !std::equal(header.begin(), header.end(), seen.begin())) {
    return 0;
  }
  large_ = r.bytes >= kLarge;
  count_overruns(socket_, overruns_, counters);
  counters.datagrams_received.add();
  counters.bytes_received_in_place.add(places.bytes());
  UcLink* link = link_of(&connection);
  current_ = link;
  connection.direct_received(token.now());
  current_ = nullptr;
  if (link != nullptr) look_at(*link);
  return r.bytes;
}

// Whose datagram it was that could not be dealt with.
UcLink* DatagramDriver::link_for(Bytes datagram, const wdp::Endpoint& from) const {
  const auto common = wire::WdpCommon::parse(datagram);
  if (!common.ok()) return nullptr;
  const auto found = port_.demux().find(*common, from);
  return found.ok() ? link_of(*found) : nullptr;
}

UcLink* DatagramDriver::link_of(wdp::UcConnection* connection) const {
  const auto it = links_.find(connection);
  return it != links_.end() ? it->second : nullptr;
}

void DatagramDriver::deliver(Token& token, Bytes bytes, const UdpSocket::Received& r) {
  if (r.to.is_link_local()) set_interface(r.to, r.interface);
  const wdp::UdReception how = reception_of(r);
  const size_t segment = std::max<size_t>(r.segment, 1);
  auto& counters = token.engine().counters();
  count_overruns(socket_, overruns_, counters);
  // Of the datagram before: those of a train are for one mostly.
  const wdp::UcConnection* connection = nullptr;
  UcLink* link = nullptr;
  do {
    counters.datagrams_received.add();
    const Bytes datagram = bytes.first(std::min(segment, bytes.size()));
    bytes = bytes.subspan(datagram.size());
    try {
      wdp::UcConnection* const reached = port_.received(datagram, how, token.now());
      if (std::exchange(connection, reached) != reached) link = link_of(reached);
      if (reached != nullptr && link != nullptr) look_at(*link);
    } catch (const std::bad_alloc&) {
      current_ = link_for(datagram, how.from);
      throw;
    }
  } while (!bytes.empty() && waits_until_.is_never());
  if (bytes.empty()) return;
  rest_in_.assign(bytes.begin(), bytes.end());
  rest_how_ = r;
}

// --- receives that are used up

void DatagramDriver::wait_for_receives(DatagramSpeaker& speaker) {
  if (std::exchange(speaker.lacks_receives_, true) || !waits_until_.is_never()) return;
  waits_for_ = &speaker;
  waits_until_ = token_->now() + kReceiveWait;
  token_->engine().want_read(*token_, *this, false);
}

void DatagramDriver::receives_posted(Token& token, DatagramSpeaker& speaker) {
  speaker.lacks_receives_ = false;
  if (waits_for_ == &speaker) wait_no_longer(token);
}

void DatagramDriver::wait_no_longer(Token& token) {
  waits_for_ = nullptr;
  waits_until_ = Time::never();
  token.engine().want_read(token, *this, true);
  if (rest_in_.empty()) return;
  const Visit visit{*this, token};
  const auto rest = std::exchange(rest_in_, {});
  deliver(token, rest, rest_how_);
}

}  // namespace weft::engine
