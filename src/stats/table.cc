#include "stats/table.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/wdp_ctl.h"

namespace weft::stats {
namespace {

static_assert(kRejReasons == wire::kRejReasons);

// Where a member stands in its block, in bytes.
template <class Block, class Member>
size_t offset_of(Member Block::*member) {
  static const Block block{};
  return static_cast<size_t>(reinterpret_cast<const std::byte*>(&(block.*member)) -
                             reinterpret_cast<const std::byte*>(&block));
}
template <class Block>
constexpr Scope scope_of() {
  if constexpr (std::is_same_v<Block, QpCounters>) return Scope::queue_pair;
  return std::is_same_v<Block, EngineCounters> ? Scope::engine : Scope::device;
}

struct Words {
  const char* kind;
  const char* sentence;
};

// A row before its texts are put together.
struct RawRow {
  Scope scope;
  const char* family;
  const char* kind;
  const char* about;
  const char* sentence;
  size_t offset;
};

// Goes through all rows, without memory of its own: an adapter does so when it starts.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void row(const RawRow& row) = 0;

  template <class Block>
  void one(Cell Block::*member, const char* name, const char* sentence) {
    row({scope_of<Block>(), name, "", sentence, "", offset_of(member)});
  }
  // `words(i)`: those of element i.
  template <class Block, size_t N, class F>
  void family(std::array<Cell, N> Block::*member, const char* name, const char* about, F&& words) {
    for (size_t i = 0; i < N; ++i) {
      const Words w = words(i);
      row({scope_of<Block>(), name, w.kind, about, w.sentence,
           offset_of(member) + i * sizeof(Cell)});
    }
  }
  template <class Block, size_t N>
  void family(std::array<Cell, N> Block::*member, const char* name, const char* about,
              const Words (&words)[N]) {
    family(member, name, about, [&](size_t i) { return words[i]; });
  }
};

void add_queue_pair_rows(Visitor& t) {
  using Q = QpCounters;
  constexpr Words kMessages[] = {
      {"send", "Sends of any kind"},
      {"write", "RDMA Writes, also the empty ones that weft sends by itself"},
      {"read", "RDMA Read Requests"},
      {"atomic", "Atomic Requests"}};
  constexpr Words kBytes[] = {
      {"send", "of Sends"}, {"write", "of RDMA Writes"}, {"read", "of RDMA Read Responses"}};
  t.family(&Q::messages_sent, "messages_sent", "Messages handed to the kernel", kMessages);
  t.family(&Q::bytes_sent, "bytes_sent", "Bytes of payload handed to the kernel", kBytes);
  t.one(&Q::fpdus_sent, "fpdus_sent",
        "FPDUs handed to TCP, or of UC and UD datagrams handed to UDP");
  t.family(&Q::messages_received, "messages_received", "Messages that came whole", kMessages);
  t.family(&Q::bytes_received, "bytes_received", "Bytes of payload that came and were placed",
           kBytes);
  t.one(&Q::fpdus_received, "fpdus_received",
        "FPDUs that came and were in order, or of UD datagrams that were delivered, or of UC "
        "all that came, copies included");
  t.one(&Q::rnr_sent, "rnr_sent",
        "Reports to the peer that a message of its waits here for a receive");
  t.one(&Q::rnr_received, "rnr_received",
        "Reports of the peer that a message of ours waits there for a receive");
  t.one(&Q::completion_errors, "completion_errors",
        "Work completions with another status than success, flushed ones included");
  t.one(&Q::datagrams_lost, "datagrams_lost",
        "UC: datagrams of the peer that have not come, as the gaps in their numbers show, "
        "wherever they were lost: on the way or for want of room in the socket "
        "(socket_overruns). What was only late is taken off again");
  t.one(&Q::datagrams_reordered, "datagrams_reordered",
        "UC: datagrams that came after a later one");
  t.one(&Q::datagrams_late, "datagrams_late",
        "UC: of these, those that came when they were not waited for any more");
  t.one(&Q::datagrams_duplicate, "datagrams_duplicate", "UC: datagrams that came more than once");
  t.one(&Q::messages_incomplete, "messages_incomplete",
        "UC: Sends and Writes with immediate given up incomplete: a Send for a later one, a Write "
        "for 16, either after 1024 newer messages or when the peer goes or counts anew");
  t.one(&Q::messages_unreceived, "messages_unreceived",
        "UC and UD: messages dropped because there was no receive for them");
}

void add_work_rows(Visitor& t) {
  using E = EngineCounters;
  t.one(&E::polls, "polls", "Turns of the program's own threads, as in ibv_poll_cq");
  t.one(&E::polls_with_work, "polls_with_work", "Of these, turns in which something moved");
  t.one(&E::sleeps, "sleeps", "Times that a thread of the program fell asleep in a blocking wait");
  t.one(&E::helper_wakeups, "helper_wakeups", "Times that the helper thread woke up");
  t.one(&E::helper_turns, "helper_turns", "Of these, times that it took the sockets over");
  t.one(&E::send_calls, "send_calls", "System calls that sent");
  t.one(&E::receive_calls, "receive_calls", "System calls that received");
  t.one(&E::epoll_wait_calls, "epoll_wait_calls", "Calls of epoll_wait(2)");
  t.one(&E::epoll_ctl_calls, "epoll_ctl_calls", "System calls that changed an epoll set");
  t.one(&E::timer_calls, "timer_calls", "System calls that set the timer of the helper thread");
  t.one(&E::sends_cut, "sends_cut", "Sends of which the socket accepted a part only, or nothing");
  t.one(&E::out_of_memory, "out_of_memory",
        "Times that memory ran out; in most cases a connection ended by it");
  t.one(&E::receives_empty, "receives_empty", "Receive calls that found nothing");
  t.one(&E::bytes_sent_copied, "bytes_sent_copied",
        "Bytes, headers included, that were copied on their way to TCP");
  t.one(&E::bytes_sent_in_place, "bytes_sent_in_place",
        "Bytes that TCP took straight from the program's memory");
  t.one(&E::bytes_received_copied, "bytes_received_copied",
        "Bytes, headers included, that came by the bounce buffer");
  t.one(&E::bytes_received_in_place, "bytes_received_in_place",
        "Bytes that TCP put straight into their place");
}

void add_stream_rows(Visitor& t) {
  using E = EngineCounters;
  constexpr Words kEnds[] = {{"peer_closed", "the peer closed between two FPDUs"},
                             {"closed", "this side closed in good order"},
                             {"terminated", "the peer sent a Terminate"},
                             {"protocol_error", "the peer violated the protocol"},
                             {"local_error", "a work request of this side failed"},
                             {"lost", "the connection broke"},
                             {"unanswered", "this host gave up a peer that was silent"}};
  // Names are those of work::Status; verbs/ checks their number.
  constexpr Words kErrors[] = {{"local_length", "local length error"},
                               {"local_qp_operation", "local queue pair operation error"},
                               {"local_protection", "local protection error"},
                               {"flushed", "flushed"},
                               {"window_bind", "memory window bind error"},
                               {"remote_invalid_request", "remote invalid request"},
                               {"remote_access", "remote access error"},
                               {"remote_operation", "remote operation error"},
                               {"remote_invalid_rd_request", "remote invalid RD request"},
                               {"retry_exceeded", "transport retries exceeded"},
                               {"rnr_retry_exceeded", "receiver-not-ready retries exceeded"},
                               {"fatal", "fatal error"},
                               {"general", "general error"}};
  constexpr Words kSameHost[] = {
      {"off", "WEFT_SAME_HOST=off here"},
      {"recorded", "WEFT_TRACE records here what passes"},
      {"disturbed", "WEFT_FAULT here"},
      {"not_weft", "the peer is not weft, or one of the two has WEFT_EXT=off"},
      {"network_namespace",
       "the peer is in another network namespace, or the kernel does not tell"},
      {"no_segment",
       "there is no memory to share, or the peer's process is not to be seen from here"},
      {"not_allowed", "the peer is of another user, or the kernel does not let this process in"},
      {"foreign_segment", "what the peer names is not the memory that it means"},
      {"by_peer", "the peer could not share it, or did not want to"}};
  t.one(&E::streams_opened, "streams_opened", "Connections that became RDMAP streams");
  t.one(&E::streams_same_host, "streams_same_host",
        "Of these, those whose bytes pass through memory of one host");
  t.one(&E::streams_same_host_copying, "streams_same_host_copying",
        "Of those, those where the kernel does not let this side pull from the peer's memory");
  t.one(&E::wake_ups_sent, "wake_ups_sent", "Bytes on TCP that wake up such a peer");
  t.family(&E::same_host_refused, "same_host_refused",
           "Peers on this host with which no memory is shared", kSameHost);
  t.one(&E::streams_by_udp, "streams_by_udp",
        "Connections that became RDMAP streams and go by datagrams instead of TCP");
  t.family(&E::stream_end, "stream_end", "Streams that ended", kEnds);
  t.one(
      &E::kicks, "kicks",
      "Empty RDMA Writes to a plain iWARP peer that had not answered (its driver may overlook the "
      "first FPDU)");
  t.one(&E::early_arrivals, "early_arrivals",
        "Messages that weft kept because they came before their receive, or behind such a "
        "message");
  t.family(&E::refused, "refused", "Streams ended by this side", [](size_t i) {
    const auto why = static_cast<wire::Refusal>(i);
    return Words{wire::counter_name(why), wire::to_string(why)};
  });
  const auto term = [](size_t i) {
    const wire::TermErrorName& e = wire::term_error(i);
    return Words{e.name, e.sentence};
  };
  t.family(&E::terminate_sent, "terminate_sent", "Terminates sent", term);
  t.family(&E::terminate_received, "terminate_received", "Terminates received", term);
  t.family(&E::completion_error, "completion_error", "Work completions with an error", kErrors);
}

void add_connection_rows(Visitor& t) {
  using E = EngineCounters;
  constexpr Words kPauses[] = {{"half_open", "256 connections had not sent their Request yet"},
                               {"backlog", "1024 requests waited for the program to look at them"},
                               {"no_descriptor", "no file descriptor was left"},
                               {"no_memory", "no memory for a connection"}};
  constexpr Words kStarts[] = {
      {"bad_key", "the peer does not speak MPA"},
      {"bad_revision", "MPA revision is neither 1 nor 2"},
      {"private_data_too_long", "more than 512 bytes of private data"},
      {"enhanced_block_missing", "no room for the enhanced block that the Request announces"},
      {"bytes_behind_request", "bytes stand right behind the Request"},
      {"fpdu_before_reply", "the peer sent FPDUs before it had the Reply"},
      {"request_late", "the Request was not there within 5 s, or 1 s where others wait"},
      {"peer_left", "the peer left before it had the Reply"},
      {"reply_unsent", "the connection broke under the Reply"},
      {"no_memory", "there was no memory, and too little of the Request was there to reject it"}};
  constexpr Words kDials[] = {{"nobody_listens", "nobody listens there"},
                              {"unreachable", "the kernel has no route, or no port left"},
                              {"timed_out", "no answer in time"},
                              {"rejected", "the peer's Reply rejects"},
                              {"no_reply", "the peer closed before its Reply"},
                              {"bad_reply", "the Reply was not acceptable"},
                              {"to_itself", "the kernel connected the socket with itself"},
                              {"no_memory", "no memory"}};
  constexpr Words kReplies[] = {
      {"bad_key", "the peer does not speak MPA"},
      {"bad_revision", "MPA revision is neither 1 nor 2"},
      {"private_data_too_long", "more than 512 bytes of private data"},
      {"enhanced_block_missing", "no room for the enhanced block that the Reply announces"},
      {"insufficient_ird", "the peer's ORD is more than this side can serve"},
      {"no_matching_rtr", "the peer asks for no kind of RTR that there is"}};
  constexpr Words kRejections[] = {{"by_program", "the program called rdma_reject"},
                                   {"channel_gone", "the program destroyed its event channel"},
                                   {"id_gone", "the program destroyed the id"},
                                   {"no_memory", "no memory"}};
  constexpr Words kBringUps[] = {
      {"no_block", "the private data is no WFRC block"},
      {"other_version", "another version of WFRC"},
      {"no_such_qp", "no such queue pair, or rdma_cm connects it"},
      {"qp_in_error", "the queue pair is in error"},
      {"already_connected", "the queue pair is connected"},
      {"duplicate", "a late copy of the Request that connected it; not answered"},
      {"not_your_peer", "the queue pair was told of another peer"},
      {"other_user", "another user of this host called in the peer's place (security.md)"},
      {"role_conflict", "this side's own connection takes precedence"},
      {"parked_too_many", "256 Requests wait for queue pairs that are not ready"},
      {"parked_too_long", "the queue pair was not ready within 30 s"},
      {"qp_left", "the queue pair was reset or destroyed"},
      {"no_memory", "no memory"}};
  constexpr Words kAnswers[] = {
      {"other", "accepted without a WFRC block, or rejected without a known reason"},
      {"not_ready", "the queue pair is not ready"},
      {"no_such_qp", "there is no such queue pair"},
      {"not_your_peer", "it was told of another peer"},
      {"role_conflict", "the peer's own connection takes precedence"},
      {"bad_parameters", "it did not understand"},
      {"qp_in_error", "the queue pair is in error or connected"}};
  t.one(&E::connections_accepted, "connections_accepted", "TCP connections accepted");
  t.family(&E::accept_paused, "accept_paused",
           "Times that callers had to wait in the kernel's queue", kPauses);
  t.family(&E::start_refused, "start_refused", "Connections closed without a Reply", kStarts);
  constexpr Words kSilent[] = {{"connecting", "while TCP or the MPA start-up made it"},
                               {"stream", "RC, with data on its way"},
                               {"datagrams", "UC"}};
  t.one(&E::dials, "dials", "Connection attempts over TCP");
  t.one(&E::dials_connected, "dials_connected", "Of these, those whose Reply accepts");
  t.one(&E::dials_without_extension, "dials_without_extension",
        "Attempts repeated without weft's extension, because no Reply came");
  t.one(&E::dials_with_revision_1, "dials_with_revision_1",
        "Attempts repeated with MPA revision 1");
  t.one(&E::channel_starts, "channel_starts", "MPA Requests sent through a channel");
  t.one(&E::channel_starts_accepted, "channel_starts_accepted",
        "Connections accepted that began in a channel");
  t.family(&E::dial_failed, "dial_failed", "Connection attempts that failed", kDials);
  t.family(&E::reply_refused, "reply_refused", "Replies that were not acceptable", kReplies);
  t.family(&E::cm_rejected, "cm_rejected", "Requests for an rdma_cm listener that were rejected",
           kRejections);
  t.family(&E::bring_up_refused, "bring_up_refused",
           "Requests for a queue pair by its number that were refused", kBringUps);
  t.family(&E::bring_up_answer, "bring_up_answer",
           "Answers of the peer that delay a bring-up by number", kAnswers);
  t.one(&E::bring_ups_given_up, "bring_ups_given_up",
        "Queue pairs that found no connection in time");
  t.family(&E::peer_silent, "peer_silent",
           "Connections on which the peer answered nothing for 3 s or more", kSilent);
}

void add_datagram_rows(Visitor& t) {
  using E = EngineCounters;
  t.one(&E::datagrams_sent, "datagrams_sent", "Datagrams handed to UDP");
  t.one(&E::datagrams_received, "datagrams_received", "Datagrams received");
  t.one(&E::datagrams_unsent, "datagrams_unsent",
        "Datagrams that the kernel refused, for instance for want of a route");
  t.one(&E::datagrams_too_big, "datagrams_too_big", "Datagrams larger than the path carries");
  t.one(&E::socket_overruns, "socket_overruns",
        "Datagrams that found no room in a socket's buffer, as the kernel counts: a train is one. "
        "Those of UC are also in datagrams_lost, each by itself");
  t.one(&E::gro_switches, "gro_switches",
        "Times that UDP_GRO was turned off (single datagrams) or on (trains)");
  t.family(&E::datagram_dropped, "datagram_dropped", "Datagrams dropped", [](size_t i) {
    const auto why = static_cast<wire::WdpDrop>(i);
    return Words{wire::counter_name(why), wire::to_string(why)};
  });
  constexpr Words kCalls[] = {
      {"other_reason", "the peer gave an unknown reason"},
      {"bad_answer", "the peer accepted with parameters that are not acceptable"},
      {"timed_out", "no answer within 12.7 s"}};
  const auto rejection = [](size_t i) {
    const auto why = static_cast<wire::RejReason>(i + 1);
    return Words{wire::counter_name(why), wire::to_string(why)};
  };
  t.family(&E::wdp_rejected, "wdp_rejected", "REJs sent in handshakes over datagrams", rejection);
  t.family(&E::wdp_call_failed, "wdp_call_failed",
           "Calls of UC, and questions about UD queue pairs, that failed",
           [&](size_t i) { return i < kRejReasons ? rejection(i) : kCalls[i - kRejReasons]; });
  t.one(&E::datagrams_held, "datagrams_held", "UC: datagrams that waited behind a gap");
  t.one(&E::messages_too_long, "messages_too_long", "UC: messages longer than their receive");
  t.one(&E::uc_reads_answered, "uc_reads_answered", "UC: ranges of RDMA Reads answered");
  t.one(&E::uc_reads_failed, "uc_reads_failed", "UC: RDMA Reads given up");
  t.one(&E::uc_ranges_repeated, "uc_ranges_repeated",
        "UC: ranges of RDMA Reads that were asked for again");
  t.one(&E::uc_errors_sent, "uc_errors_sent",
        "UC: reports to the peer that a message is not allowed");
  t.one(&E::uc_errors_received, "uc_errors_received", "UC: such reports from the peer");
  t.one(&E::uc_paths_narrowed, "uc_paths_narrowed",
        "UC: times that a probe found a path narrower than its two ends");
  t.one(&E::rd_datagrams_sent, "rd_datagrams_sent", "Channels: datagrams sent, each once");
  t.one(&E::rd_datagrams_repeated, "rd_datagrams_repeated",
        "Channels: datagrams sent again, lost or to ask with");
  t.one(&E::rd_datagrams_lost, "rd_datagrams_lost",
        "Channels: datagrams found to be lost, each time");
  t.one(&E::rd_probes, "rd_probes", "Channels: questions to a peer that has answered nothing");
  t.one(&E::rd_datagrams_received, "rd_datagrams_received",
        "Channels: datagrams received, copies included");
  t.one(&E::rd_datagrams_reordered, "rd_datagrams_reordered",
        "Channels: datagrams received before an earlier one");
  t.one(&E::rd_datagrams_marked, "rd_datagrams_marked",
        "Channels: datagrams received that a router had marked, for it was congested (ECN)");
  t.one(&E::rd_marks_heard, "rd_marks_heard",
        "Channels: datagrams sent that the peer received with such a mark");
  t.one(&E::rd_messages_held, "rd_messages_held",
        "Channels: messages received that waited for an earlier one or for a receive");
  t.one(&E::rd_messages_given_up, "rd_messages_given_up",
        "Channels: messages received that waited for a receive in vain");
  t.one(&E::rd_messages_lost, "rd_messages_lost",
        "Channels: messages that ended with their channel, nobody having acknowledged them");
  t.one(
      &E::ud_messages_plain, "ud_messages_plain",
      "UD with WEFT_UD=reliable: messages to peers without it, sent as datagrams that may be lost");
}

void add_device_rows(Visitor& t) {
  using D = DeviceCounters;
  t.one(&D::queue_pairs_created, "queue_pairs_created", "Queue pairs created");
  t.one(&D::queue_pairs_destroyed, "queue_pairs_destroyed", "Queue pairs destroyed");
  t.one(&D::queue_pairs_hidden, "queue_pairs_hidden",
        "Queue pairs that found no place for counters of their own; they count for their engine");
  t.one(&D::regions_registered, "regions_registered", "Memory regions registered");
  t.one(&D::registrations_refused, "registrations_refused",
        "Memory registrations refused; WEFT_LOG=info says why");
  t.one(&D::completion_queue_overruns, "completion_queue_overruns",
        "Completion queues that had no room for a completion");
  t.one(&D::ports_opened, "ports_opened", "Port numbers claimed for queue pairs");
  t.one(&D::ports_refused, "ports_refused", "Times that no port number could be claimed");
  t.one(&D::private_data_refused, "private_data_refused",
        "Calls of rdma_connect, rdma_accept and rdma_reject with too much private data");
  constexpr Words kInjected[] = {
      {"datagrams_out", "datagrams sent that a decision was made for"},
      {"datagrams_in", "datagrams received that a decision was made for"},
      {"lost_out", "datagrams sent that were lost"},
      {"lost_in", "datagrams received that were lost"},
      {"duplicated_out", "datagrams sent twice"},
      {"duplicated_in", "datagrams received twice"},
      {"reordered_out", "copies of sent ones that others might overtake"},
      {"reordered_in", "copies of received ones that others might overtake"},
      {"corrupted_out", "copies of sent ones of which bits were flipped"},
      {"corrupted_in", "copies of received ones of which bits were flipped"},
      {"overflowed_out", "copies of sent ones lost because too many were held back"},
      {"overflowed_in", "copies of received ones lost because too many were held back"},
      {"unsent", "copies that were held back and that the kernel would not send then"},
      {"stream_split", "calls on TCP that moved a part only"},
      {"stream_delayed", "times that TCP was kept waiting"}};
  t.family(&D::fault_injected, "fault_injected", "Faults on purpose, by WEFT_FAULT", kInjected);
}

void visit_table(Visitor& t) {
  add_queue_pair_rows(t);
  add_work_rows(t);
  add_stream_rows(t);
  add_connection_rows(t);
  add_datagram_rows(t);
  add_device_rows(t);
}

std::vector<Row> make_table() {
  struct Collect final : Visitor {
    void row(const RawRow& r) override {
      std::string sentence = r.about;
      if (*r.sentence != '\0') sentence += std::string(": ") + r.sentence;
      rows.push_back({r.scope, r.family, r.kind, std::move(sentence), r.about, r.offset});
    }
    std::vector<Row> rows;
  } collect;
  visit_table(collect);
  return std::move(collect.rows);
}

template <class Block>
void add_block(const Block& block, std::span<uint64_t> values) {
  const std::span<const Row> rows = table();
  for (size_t i = 0; i < values.size(); ++i) {
    if (rows[i].scope != scope_of<Block>()) continue;
    const auto* at = reinterpret_cast<const std::byte*>(&block) + rows[i].offset;
    values[i] += reinterpret_cast<const Cell*>(at)->value();
  }
}

}  // namespace

std::span<const Row> table() {
  static const auto& rows = *new std::vector<Row>(make_table());
  return rows;
}

size_t row_count(Scope scope) {
  size_t n = 0;
  for (const Row& row : table()) n += row.scope <= scope ? 1 : 0;
  return n;
}

void add_values(const QpCounters& block, std::span<uint64_t> values) {
  add_block(block, values);
}
void add_values(const EngineCounters& block, std::span<uint64_t> values) {
  add_block(block, values);
}
void add_values(const DeviceCounters& block, std::span<uint64_t> values) {
  add_block(block, values);
}

const char* Row::unit() const {
  // The noun that the name begins with.
  static constexpr std::array<std::pair<std::string_view, const char*>, 5> kNouns{
      {{"bytes_", "bytes"},
       {"messages_", "messages"},
       {"fpdus_", "FPDUs"},
       {"datagrams_", "datagrams"},
       {"datagram_", "datagrams"}}};
  for (const auto& [noun, unit] : kNouns) {
    if (family.starts_with(noun)) return unit;
  }
  return "times";
}

// FNV-1a over names and places.
uint64_t fingerprint() {
  struct Mix final : Visitor {
    void row(const RawRow& r) override {
      text(r.family);
      text(r.kind);
      number(r.offset << 2 | static_cast<uint64_t>(r.scope));
    }
    void text(const char* p) {
      for (; *p != '\0'; ++p) number(static_cast<uint8_t>(*p));
      number(0);
    }
    void number(uint64_t n) { hash = (hash ^ n) * 0x100000001b3U; }
    uint64_t hash = 0xcbf29ce484222325U;
  } mix;
  visit_table(mix);
  return mix.hash;
}

}  // namespace weft::stats
