-- What WDP's fields and numbers are called: the first part of wdp.lua, which loads it from its own folder.

local CLASSES = { [0] = "CTL", [1] = "UC", [2] = "UD", [3] = "RD", [4] = "RDACK", [5] = "bundle" }
local OPCODES = {
  [0] = "Write", [1] = "Read Request", [2] = "Read Response", [3] = "Send", [4] = "Send with Invalidate",
  [5] = "Send with Solicited Event", [6] = "Send with Solicited Event and Invalidate", [7] = "RESP",
  [10] = "Atomic Request", [11] = "Atomic Response",
}
local TYPES = {
  [1] = "REQ", [2] = "REP", [3] = "RTU", [4] = "REJ", [5] = "COOKIE", [6] = "WAIT", [7] = "DREQ", [8] = "DREP",
  [9] = "KA", [10] = "KAA", [11] = "PROBE", [12] = "PROBEA", [13] = "ERR",
}
local SERVICES = { [1] = "UC", [2] = "RC flow", [3] = "RD channel", [4] = "UD resolution" }
local REJECTIONS = {
  [1] = "no listener", [2] = "refused by the application", [3] = "other version", [4] = "service mismatch",
  [5] = "no resources", [6] = "bad parameters", [7] = "critical TLV", [8] = "not ready", [9] = "role conflict",
  [10] = "no such queue pair",
}
local LAYERS = { [0] = "RDMAP", [1] = "DDP", [2] = "LLP" }
local RESPONSES = {
  [0] = "ACK", [1] = "RNR", [2] = "not ready", [3] = "length", [4] = "access", [5] = "operation", [6] = "invalid flow",
  [7] = "flush", [8] = "key", [9] = "ready",
}
local ATOMICS = { [0] = "FetchAdd", [2] = "CmpSwap" }

-- What a receiver says of a datagram that it drops.
local DROPS = {
  too_short = "Too short for its header",
  not_wdp = "Not WDP: the first nibble is not 0xD",
  other_version = "Another version of WDP",
  unknown_class = "No such class",
  wrong_class = "A class that does not belong here",
  crc_missing = "The class always carries a CRC, and this says that it has none",
  bad_crc = "Bad CRC",
  length_mismatch = "The datagram's length is not what its header says",
  ddp_version = "The DDP version is not 1",
  rdmap_version = "The RDMAP version is not 1",
  bad_opcode = "The class has no such opcode",
  tag_mismatch = "Tagged, or untagged, against its opcode",
  bad_stride = "No STRIDE, or too large a one",
  misaligned_offset = "MO is no multiple of STRIDE",
  offset_beyond_message = "MO is beyond the message",
  last_mismatch = "L is set where more follows, or not set at the end",
  message_length = "Messages of this opcode have another length",
  read_range = "The range is not inside the Read",
  index_mismatch = "didx, sidx and the queue pair do not go together",
  unknown_ctl_type = "No such type",
  request_not_padded = "A REQ has at least 256 bytes",
  private_data_too_long = "More than 512 bytes of private data",
  parts_too_long = "The parts are longer than the datagram",
  bad_tlv = "TLVs do not fit into each other",
  zero_token = "A session needs a token other than 0",
  wait_too_long = "More than 30000 ms",
  too_many_sack_words = "More than 32 SACK words",
}

local f, e = {}, {}
local function field(name, kind, title, ...) f[name] = ProtoField[kind]("wdp." .. name, title, ...) end

field("magic", "uint8", "Magic", base.HEX, nil, 0xf0)
field("version", "uint8", "Version", base.DEC, nil, 0x0f)
field("class", "uint8", "Class", base.DEC, CLASSES, 0xf0)
field("flags", "uint8", "Flags", base.HEX, nil, 0x0f)
field("flags.crc", "bool", "CRC field valid", 8, nil, 0x08)
field("flags.imm", "bool", "IMM field valid", 8, nil, 0x04)
field("flags.ackreq", "bool", "Acknowledge now", 8, nil, 0x02)
field("flags.retx", "bool", "Retransmission", 8, nil, 0x01)
field("didx", "uint8", "Destination index")
field("sidx", "uint8", "Source index")
field("token", "uint32", "Token", base.HEX)
field("crc", "uint32", "CRC32C", base.HEX)
field("crc.status", "string", "CRC status")
field("drop", "string", "A receiver drops it")

field("psn", "uint32", "PSN")
field("csn", "uint32", "CSN")
field("msn", "uint32", "MSN")
field("mo", "uint32", "Message offset (MO)")
field("mlen", "uint32", "Message length (MLEN)")
field("ddp", "uint8", "DDP control", base.HEX)
field("ddp.tagged", "bool", "Tagged", 8, nil, 0x80)
field("ddp.last", "bool", "Last", 8, nil, 0x40)
field("ddp.se", "bool", "Solicited event of a Write", 8, nil, 0x20)
field("ddp.flow_open", "bool", "Flow open", 8, nil, 0x10)
field("ddp.wants_response", "bool", "Response wanted", 8, nil, 0x08)
field("ddp.version", "uint8", "DDP version", base.DEC, nil, 0x03)
field("rdmap", "uint8", "RDMAP control", base.HEX)
field("rdmap.version", "uint8", "RDMAP version", base.DEC, nil, 0xc0)
field("rdmap.opcode", "uint8", "Opcode", base.DEC, OPCODES, 0x0f)
field("stride", "uint16", "STRIDE")
field("stag", "uint32", "STag", base.HEX)
field("imm", "uint32", "Immediate data", base.HEX)
field("rid", "uint32", "Read ID (RID)")
field("to", "uint64", "Tagged offset (TO)", base.HEX)
field("q_key", "uint32", "Q_Key", base.HEX)
field("segment", "uint32", "Segment of the message")
field("segments", "uint32", "Segments of the message")
field("payload", "bytes", "Payload")
field("payload_length", "uint32", "Payload length")

field("read.length", "uint32", "Length of the range")
field("read.attempt", "uint32", "Attempt")
field("atomic.opcode", "uint32", "Atomic operation", base.DEC, ATOMICS, 0x0f)
field("atomic.request_id", "uint32", "Request identifier")
field("atomic.stag", "uint32", "Remote STag", base.HEX)
field("atomic.to", "uint64", "Remote TO", base.HEX)
field("atomic.add_swap", "uint64", "Add or swap data", base.HEX)
field("atomic.add_swap_mask", "uint64", "Add or swap mask", base.HEX)
field("atomic.compare", "uint64", "Compare data", base.HEX)
field("atomic.compare_mask", "uint64", "Compare mask", base.HEX)
field("atomic.original", "uint64", "Original value", base.HEX)
field("resp.qidx", "uint8", "Requester's index")
field("resp.ridx", "uint8", "Responder's index")
field("resp.code", "uint8", "Code", base.DEC, RESPONSES)
field("resp.delay", "uint8", "Delay (2^n * 10 us)")
field("resp.msn", "uint32", "MSN")
field("resp.aux", "uint32", "Detail", base.HEX)

field("source_qpn", "uint32", "Source QPN", base.HEX, nil, 0xffffff)
field("dest_qpn", "uint32", "Destination QPN", base.HEX, nil, 0xffffff)
field("length", "uint16", "Length")

field("ack.cum", "uint32", "Next CSN expected (CUM)")
field("ack.ts", "uint32", "Clock of the sender (TS, us)")
field("ack.trig", "uint32", "Newest CSN received (TRIG)")
field("ack.delay", "uint16", "Delay (8 us)")
field("ack.words", "uint16", "SACK words (NW)")
field("ack.rwnd", "uint32", "Window (RWND, KiB)")
field("ack.ce", "uint32", "Datagrams marked CE")
field("ack.sack", "uint32", "SACK word", base.HEX)
field("ack.held", "uint32", "CSN held")

field("ctl.type", "uint8", "Type", base.DEC, TYPES)
field("ctl.attempt", "uint8", "Attempt")
field("ctl.source_token", "uint32", "Source token", base.HEX)
field("ctl.xid", "uint32", "XID", base.HEX)
field("ctl.service", "uint8", "Service", base.DEC, SERVICES)
field("ctl.modes", "uint8", "Modes", base.HEX)
field("ctl.modes.ib_style", "bool", "IB-style", 8, nil, 0x01)
field("ctl.ird", "uint16", "IRD")
field("ctl.ord", "uint16", "ORD")
field("ctl.max_payload", "uint16", "Largest UDP payload")
field("ctl.first_psn", "uint32", "First PSN or CSN")
field("ctl.features", "uint32", "Features", base.HEX)
field("ctl.features.data_crc", "bool", "Data CRC", 32, nil, 0x01)
field("ctl.features.immediate", "bool", "Immediate data", 32, nil, 0x02)
field("ctl.features.uc_read", "bool", "UC Read", 32, nil, 0x04)
field("ctl.features.atomics", "bool", "Atomics", 32, nil, 0x08)
field("ctl.features.ka_stats", "bool", "Figures in keepalives", 32, nil, 0x10)
field("ctl.features.responses", "bool", "Queue pairs of type RD", 32, nil, 0x20)
field("ctl.features.starts", "bool", "Start of RC connections", 32, nil, 0x40)
field("ctl.cookie", "uint64", "Cookie", base.HEX)
field("ctl.pdlen", "uint16", "Length of private data (PDLEN)")
field("ctl.tlvlen", "uint16", "Length of TLVs (TLVLEN)")
field("ctl.reason", "uint32", "Reason")
field("ctl.rej", "uint32", "Reason", base.DEC, REJECTIONS)
field("ctl.wait", "uint32", "Time to wait (ms)")
field("ctl.error", "uint32", "Error", base.HEX)
field("ctl.error.layer", "uint8", "Layer", base.DEC, LAYERS)
field("ctl.error.etype", "uint8", "Error type")
field("ctl.error.code", "uint8", "Error code", base.HEX)
field("ctl.highest_psn", "uint32", "Highest PSN")
field("ctl.received", "uint32", "Datagrams received")
field("ctl.duplicates", "uint32", "Datagrams dropped as duplicates")
field("ctl.offending", "bytes", "Header that was wrong")
field("ctl.private_data", "bytes", "Private data")
field("ctl.padding", "bytes", "Padding")
field("tlv", "none", "TLV")
field("tlv.critical", "bool", "Critical", 16, nil, 0x8000)
field("tlv.type", "uint16", "Type", base.DEC, { [1] = "ended channel" }, 0x7fff)
field("tlv.length", "uint16", "Length")
field("tlv.value", "bytes", "Value")
field("tlv.ended.token", "uint32", "Receiver's token of the ended channel", base.HEX)
field("tlv.ended.csn", "uint32", "Highest CSN up to which all have come")

e.drop = ProtoExpert.new("wdp.malformed", "WDP: a receiver drops it", expert.group.MALFORMED, expert.severity.ERROR)
e.crc = ProtoExpert.new("wdp.crc.bad", "WDP: bad CRC", expert.group.CHECKSUM, expert.severity.ERROR)
e.version = ProtoExpert.new("wdp.other_version", "WDP: another version", expert.group.UNDECODED, expert.severity.WARN)
e.cut = ProtoExpert.new("wdp.cut", "WDP: the capture has only the beginning", expert.group.UNDECODED, expert.severity.NOTE)
e.reject = ProtoExpert.new("wdp.rejected", "WDP: rejected", expert.group.RESPONSE_CODE, expert.severity.NOTE)
e.error = ProtoExpert.new("wdp.error", "WDP: an error is reported", expert.group.RESPONSE_CODE, expert.severity.WARN)

return { classes = CLASSES, opcodes = OPCODES, types = TYPES, services = SERVICES, rejections = REJECTIONS, drops = DROPS, fields = f, experts = e }
