// What the parameters of a connection of rdma_cm are in the start-ups of MPA and WDP, and what the
// peer's answer makes of them. Functions, which keep nothing.
#pragma once

#include <optional>

#include "cm/service.h"
#include "cm/started.h"
#include "mpa/startup.h"
#include "verbs/transport.h"

namespace weft::cm {

// RDMA Reads that a peer tells of; nothing: it does not say. As many as the device has, at most.
uint8_t reads_told(std::optional<uint16_t> told);

// Of an MPA Request or Reply (RC).
mpa::Offer stream_offer(const ConnectionParameters& parameters);
// Of a REQ or REP (UC), over this path, on that driver's socket.
wdp::Offer session_offer(const verbs::DatagramCaller& caller, const drive::DatagramDriver& driver,
                         const wdp::Path& path, const ConnectionParameters& parameters,
                         std::optional<uint8_t> type_of_service);

// The start-up has agreed on these numbers of RDMA Reads, in and out.
void agree_on(ConnectionParameters& parameters, uint32_t ird, uint32_t ord);
// As an event tells them: without private data, which is the peer's there. Needs no memory.
ConnectionParameters agreed(const ConnectionParameters& parameters);
// The peer has answered, by a Reply, or, to who called (`active`), by a REP; else by an RTU. Puts
// what is agreed on into `parameters`. The result: as an event tells the answer.
ConnectionParameters take_answer(ConnectionParameters& parameters, Started& started);
ConnectionParameters take_answer(ConnectionParameters& parameters,
                                 const wdp::UcConnection& connection, bool active);

}  // namespace weft::cm
