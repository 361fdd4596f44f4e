-- Wireshark dissector for WDP, the protocol of weft's datagrams (UC, UD and RD over UDP).
--
--   tshark -X lua_script:wdp.lua -r FILE -Y wdp
--
-- or put it into the folder of personal Lua plugins that Wireshark names under Help > About > Folders. Sections are those of docs/spec. It knows datagrams by their first bytes, on any port; where another protocol takes
-- them first: -o udp.try_heuristic_first:TRUE, or -d udp.port==PORT,wdp, which shows bad ones as well.
--
-- What a receiver would drop has the reason in wdp.drop, by the name that weft counts it under.

local wdp = Proto("wdp", "weft Datagram Protocol")
wdp.prefs.check_crc = Pref.bool("Check CRC32C", true, "Compute the CRC of each datagram that carries one")

-- The other two files stand beside this one.
local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local names = dofile(folder .. "wdp_names.lua")
local checks = assert(loadfile(folder .. "wdp_checks.lua"))(names)
local f, e, has_flag = names.fields, names.experts, checks.has_flag

local function list(of)
  local all = {}
  for _, v in pairs(of) do all[#all + 1] = v end
  return all
end
wdp.fields = list(f)
wdp.experts = list(e)

local READ_OR_ATOMIC = { [1] = true, [2] = true, [10] = true, [11] = true }
local INVALIDATES = { [4] = true, [6] = true }

local function say_dropped(tree, reason)
  local item = tree:add(f.drop, reason)
  item:set_generated()
  local kind = reason == "bad_crc" and e.crc or reason == "other_version" and e.version or e.drop
  item:add_proto_expert_info(kind, names.drops[reason])
end

-- --- The first 16 bytes (spec/wdp 2.2)

local function show_common(v, tree, base_offset, class)
  local o = base_offset
  if not v:has(o, 2) then return end
  v:add(tree, "magic", o, 1)
  v:add(tree, "version", o, 1)
  v:add(tree, "class", o + 1, 1)
  local flags = v:add(tree, "flags", o + 1, 1)
  for _, name in ipairs({ "crc", "imm", "ackreq", "retx" }) do v:add(flags, "flags." .. name, o + 1, 1) end
  v:add(tree, "didx", o + 2, 1)
  v:add(tree, "sidx", o + 3, 1)
  v:add(tree, class == 2 and "q_key" or "token", o + 4, 4)
end

-- "Good", "Bad", "Unchecked" or "Absent".
local function show_crc(v, tree, class)
  if not v:has(12, 4) then return "Unchecked" end
  local stored = v.tvb(12, 4):le_uint()
  local item = tree:add_le(f.crc, v.tvb(12, 4))
  local status
  if not has_flag(v:u8(1), 8) then
    status = "Absent"
  elseif v.kept < v.size or not wdp.prefs.check_crc then
    status = "Unchecked"
  else
    local computed = checks.crc32c(v.tvb:raw(0, v.size))
    status = computed == stored and "Good" or "Bad"
    if status == "Bad" then item:append_text(string.format(", should be 0x%08x", computed)) end
  end
  item:add(f["crc.status"], status):set_generated()
  return status
end

-- --- UC and RD data (spec/wdp-uc 2), the messages of spec/wdp-uc 5 and spec/wdp-rd 6

local function show_control(v, tree, o, class)
  local ddp = v:add(tree, "ddp", o, 1)
  if ddp then
    v:add(ddp, "ddp.tagged", o, 1)
    v:add(ddp, "ddp.last", o, 1)
    if class ~= 2 then v:add(ddp, "ddp.se", o, 1) end
    if class == 3 then
      v:add(ddp, "ddp.flow_open", o, 1)
      v:add(ddp, "ddp.wants_response", o, 1)
    end
    v:add(ddp, "ddp.version", o, 1)
  end
  local rdmap = v:add(tree, "rdmap", o + 1, 1)
  if rdmap then
    v:add(rdmap, "rdmap.version", o + 1, 1)
    v:add(rdmap, "rdmap.opcode", o + 1, 1)
  end
end

-- The header, which an ERR quotes, too.
local function show_data_header(v, tree, o, class)
  v:add(tree, class == 3 and "csn" or "psn", o + 8, 4)
  v:add(tree, "msn", o + 16, 4)
  v:add(tree, "mo", o + 20, 4)
  v:add(tree, "mlen", o + 24, 4)
  show_control(v, tree, o + 28, class)
  v:add(tree, "stride", o + 30, 2)
  v:add(tree, "stag", o + 32, 4)
  if v:has(o + 36, 4) then
    local opcode = v:u8(o + 29) % 16
    if READ_OR_ATOMIC[opcode] then
      v:add(tree, "rid", o + 36, 4)
    elseif has_flag(v:u8(o + 1), 4) then
      v:add(tree, "imm", o + 36, 4)
    end
    v:add(tree, "to", o + 40, 8)
    -- spec/wdp-rd 3: RD has the Q_Key in the upper half of the TO of what is not tagged.
    if class == 3 and opcode >= 3 and opcode <= 6 then v:add(tree, "q_key", o + 40, 4) end
  end
end

local function show_atomic_request(v, tree)
  v:add(tree, "atomic.opcode", 48, 4)
  v:add(tree, "atomic.request_id", 52, 4)
  v:add(tree, "atomic.stag", 56, 4)
  v:add(tree, "atomic.to", 60, 8)
  v:add(tree, "atomic.add_swap", 68, 8)
  v:add(tree, "atomic.add_swap_mask", 76, 8)
  v:add(tree, "atomic.compare", 84, 8)
  v:add(tree, "atomic.compare_mask", 92, 8)
end

local function show_responses(v, tree)
  for o = 48, v.kept - 12, 12 do
    local one = tree:add(wdp, v.tvb(o, 12), "RESP")
    v:add(one, "resp.qidx", o, 1)
    v:add(one, "resp.ridx", o + 1, 1)
    v:add(one, "resp.code", o + 2, 1)
    v:add(one, "resp.delay", o + 3, 1)
    v:add(one, "resp.msn", o + 4, 4)
    v:add(one, "resp.aux", o + 8, 4)
  end
end

local function show_payload(v, tree, header)
  tree:add(f.payload_length, math.max(0, v.size - header)):set_generated()
  v:add_bytes(tree, "payload", header, v.size - header)
end

local function show_data(v, tree, class)
  show_data_header(v, tree, 0, class)
  local reason = checks.data(v, class)
  if not v:has(0, 48) then return reason, names.classes[class] end
  local opcode, mo, mlen, stride = v:u8(29) % 16, v:u32(20), v:u32(24), v:u16(30)
  local is_end = opcode == 7 and v:u8(2) ~= 0
  local info = string.format("%s %s MSN %u", names.classes[class],
                             is_end and "END" or names.opcodes[opcode] or "opcode " .. opcode, v:u32(16))
  if is_end then
    show_payload(v, tree, 48)
    return reason, info .. string.format(" at %u", mo)
  end
  if INVALIDATES[opcode] then info = info .. string.format(" STag 0x%08x", v:u32(32)) end
  if opcode == 1 then
    v:add(tree, "read.length", 48, 4)
    v:add(tree, "read.attempt", 52, 4)
    if v:has(48, 8) then
      info = info .. string.format(" RID %u, %u bytes from %u of %u, attempt %u", v:u32(36), v:u32(48), mo, mlen, v:u32(52))
    end
    return reason, info
  end
  if stride > 0 and reason == nil then
    local count = math.max(1, math.ceil(mlen / stride))
    tree:add(f.segment, mo / stride + 1):set_generated()
    tree:add(f.segments, count):set_generated()
    info = info .. string.format(", %u of %u, %u bytes", mo / stride + 1, count, v.size - 48)
  end
  if opcode == 10 then
    show_atomic_request(v, tree)
  elseif opcode == 11 then
    v:add(tree, "atomic.request_id", 48, 4)
    v:add(tree, "atomic.original", 52, 8)
  elseif opcode == 7 then
    show_responses(v, tree)
  end
  show_payload(v, tree, 48)
  return reason, info
end

-- --- UD (spec/wdp-ud 2)

local function show_ud(v, tree)
  v:add(tree, "source_qpn", 8, 4)
  v:add(tree, "dest_qpn", 16, 4)
  v:add(tree, "msn", 20, 4)
  show_control(v, tree, 24, 2)
  v:add(tree, "length", 26, 2)
  if v:has(28, 4) and has_flag(v:u8(1), 4) then v:add(tree, "imm", 28, 4) end
  local reason = checks.ud(v)
  if not v:has(0, 32) then return reason, "UD" end
  show_payload(v, tree, 32)
  local to = v:u32(16) % 16777216
  local info = string.format("UD %s from 0x%06x to %s, %u bytes", names.opcodes[v:u8(25) % 16] or "opcode " .. v:u8(25) % 16,
                             v:u32(8) % 16777216, to == 0xffffff and "multicast" or string.format("0x%06x", to), v.size - 32)
  return reason, info
end

-- --- RDACK (spec/wdp-rd 4)

local function show_ack(v, tree, crc)
  v:add(tree, "ack.cum", 8, 4)
  v:add(tree, "ack.ts", 16, 4)
  v:add(tree, "ack.trig", 20, 4)
  v:add(tree, "ack.delay", 24, 2)
  v:add(tree, "ack.words", 26, 2)
  v:add(tree, "ack.rwnd", 28, 4)
  v:add(tree, "ack.ce", 32, 4)
  local reason = checks.ack(v, crc)
  if not v:has(0, 36) then return reason, "RDACK" end
  local cum, held = v:u32(8), 0
  for i = 0, math.min(v:u16(26), 32) - 1 do
    local o = 36 + 4 * i
    if not v:has(o, 4) then break end
    local word = v:add(tree, "ack.sack", o, 4)
    local bits = v:u32(o)
    for k = 0, 31 do
      if has_flag(bits, 2 ^ (31 - k)) then
        word:add(f["ack.held"], v.tvb(o, 4), (cum + 1 + 32 * i + k) % 4294967296):set_generated()
        held = held + 1
      end
    end
  end
  return reason, string.format("RDACK up to %u, %u more, window %u KiB", cum, held, v:u32(28))
end

-- --- Bundles (spec/wdp-rd 6.7)

-- Parts with a fault, and those behind them, are bytes.
local function show_bundle(v, tree)
  v:add(tree, "csn", 8, 4)
  local infos = {}
  local reason = checks.bundle(v)
  if reason then return reason, "bundle" end
  checks.each_part(v, function(part, offset)
    v:add(tree, "length", offset - 4, 2)
    local class = math.floor(part:u8(1) / 16)
    local one = tree:add(wdp, v.tvb(offset, part.size), "Part")
    show_common(part, one, 0, class)
    local crc = show_crc(part, one, class)
    local _, info
    if class == 4 then
      _, info = show_ack(part, one, crc)
    else
      _, info = show_data(part, one, class)
    end
    one:append_text(", " .. info)
    infos[#infos + 1] = info
    return nil
  end)
  return nil, #infos == 1 and "bundle: " .. infos[1] or "bundle of " .. #infos .. ": " .. table.concat(infos, "; ")
end

-- --- CTL (spec/wdp 3.1)

local function show_features(v, tree)
  local features = v:add(tree, "ctl.features", 44, 4)
  if not features then return end
  for _, name in ipairs({ "data_crc", "immediate", "uc_read", "atomics", "ka_stats", "responses", "starts" }) do
    v:add(features, "ctl.features." .. name, 44, 4)
  end
end

local function show_reason(v, tree, kind)
  if kind == 4 then
    local item = v:add(tree, "ctl.rej", 60, 4)
    if item then item:add_proto_expert_info(e.reject, "Rejected: " .. (names.rejections[v:u32(60)] or "unknown reason")) end
  elseif kind == 6 then
    v:add(tree, "ctl.wait", 60, 4)
  elseif kind == 13 then
    local item = v:add(tree, "ctl.error", 60, 4)
    if item then
      v:add(item, "ctl.error.layer", 61, 1)
      v:add(item, "ctl.error.etype", 62, 1)
      v:add(item, "ctl.error.code", 63, 1)
      item:add_proto_expert_info(e.error, string.format("Error of the peer: layer %u, type %u, code 0x%02x", v:u8(61), v:u8(62), v:u8(63)))
    end
  else
    v:add(tree, "ctl.reason", 60, 4)
  end
end

-- What stands between the reason and the private data.
local function show_own(v, tree, kind)
  if kind == 7 or kind == 9 or kind == 10 then v:add(tree, "ctl.highest_psn", 64, 4) end
  if kind == 10 then
    v:add(tree, "ctl.received", 68, 4)
    v:add(tree, "ctl.duplicates", 72, 4)
  end
  if kind == 13 then
    local quote = v:add(tree, "ctl.offending", 64, 48)
    if quote then
      local class = math.floor(v:u8(65) / 16)
      show_common(v, quote, 64, class)
      if class == 1 or class == 3 then show_data_header(v, quote, 64, class) end
    end
  end
end

local function show_tlvs(v, tree, at, stop)
  while stop - at >= 4 and v:has(at, 4) do
    local n = v:u16(at + 2)
    local size = math.min(4 + checks.padded(n), stop - at, v.kept - at)
    local one = tree:add(f.tlv, v.tvb(at, size))
    v:add(one, "tlv.critical", at, 2)
    v:add(one, "tlv.type", at, 2)
    v:add(one, "tlv.length", at + 2, 2)
    if v:u16(at) == 1 and n == 8 then
      v:add(one, "tlv.ended.token", at + 4, 4)
      v:add(one, "tlv.ended.csn", at + 8, 4)
    else
      v:add_bytes(one, "tlv.value", at + 4, math.min(n, stop - at - 4))
    end
    at = at + 4 + checks.padded(n)
  end
end

local function show_ctl(v, tree, crc)
  v:add(tree, "ctl.type", 8, 1)
  v:add(tree, "ctl.attempt", 9, 1)
  v:add(tree, "length", 10, 2)
  local kind = v:has(8, 1) and v:u8(8) or 0
  local service = v:has(32, 1) and v:u8(32) or 0
  v:add(tree, "ctl.source_token", 16, 4)
  v:add(tree, "source_qpn", 20, 4)
  v:add(tree, "dest_qpn", 24, 4)
  v:add(tree, "ctl.xid", 28, 4)
  v:add(tree, "ctl.service", 32, 1)
  local modes = v:add(tree, "ctl.modes", 33, 1)
  if modes then v:add(modes, "ctl.modes.ib_style", 33, 1) end
  v:add(tree, "ctl.ird", 34, 2)
  v:add(tree, "ctl.ord", 36, 2)
  v:add(tree, "ctl.max_payload", 38, 2)
  v:add(tree, (kind == 2 and service == 4) and "q_key" or "ctl.first_psn", 40, 4)
  show_features(v, tree)
  v:add(tree, "ctl.cookie", 48, 8)
  v:add(tree, "ctl.pdlen", 56, 2)
  v:add(tree, "ctl.tlvlen", 58, 2)
  show_reason(v, tree, kind)
  show_own(v, tree, kind)
  local reason = checks.ctl(v, crc)
  local name = names.types[kind] or "type " .. kind
  if not v:has(0, 64) then return reason, "CTL " .. name end

  local at = 64 + (checks.own[kind] or 0)
  local pdlen, tlvlen = v:u16(56), v:u16(58)
  if pdlen <= 512 and at + checks.padded(pdlen) + tlvlen <= v.size then
    v:add_bytes(tree, "ctl.private_data", at, pdlen)
    at = at + checks.padded(pdlen)
    show_tlvs(v, tree, at, at + tlvlen)
    at = at + tlvlen
  end
  if at < v.kept then v:add_bytes(tree, "ctl.padding", at, v.size - at) end

  local info = string.format("CTL %s %s XID 0x%08x", name, names.services[service] or "service " .. service, v:u32(28))
  if kind == 4 then info = info .. ": " .. (names.rejections[v:u32(60)] or "reason " .. v:u32(60)) end
  return reason, info
end

-- ---

local function dissect(tvb, pinfo, tree)
  local v = checks.view(tvb)
  pinfo.cols.protocol = "WDP"
  local top = tree:add(wdp, tvb())
  if v.size < 16 then
    say_dropped(top, "too_short")
    pinfo.cols.info = "WDP, too short"
    return
  end
  if v.kept < 2 then
    top:add_proto_expert_info(e.cut)
    pinfo.cols.info = "WDP, cut"
    return
  end
  local class = math.floor(v:u8(1) / 16)
  show_common(v, top, 0, class)
  local early = (math.floor(v:u8(0) / 16) ~= 0xd and "not_wdp") or (v:u8(0) % 16 ~= 1 and "other_version") or
                (class > 5 and "unknown_class") or nil
  if early then
    say_dropped(top, early)
    pinfo.cols.info = "WDP: " .. names.drops[early]
    return
  end
  local crc = show_crc(v, top, class)
  local reason, info
  if class == 0 then
    reason, info = show_ctl(v, top, crc)
  elseif class == 2 then
    reason, info = show_ud(v, top)
  elseif class == 4 then
    reason, info = show_ack(v, top, crc)
  elseif class == 5 then
    reason, info = show_bundle(v, top)
  else
    reason, info = show_data(v, top, class)
  end
  if not reason and crc == "Bad" then reason = "bad_crc" end
  if reason then
    say_dropped(top, reason)
    info = info .. " [" .. names.drops[reason] .. "]"
  end
  if v.kept < v.size then top:add_proto_expert_info(e.cut) end
  top:append_text(", " .. info)
  pinfo.cols.info = info
end

function wdp.dissector(tvb, pinfo, tree)
  dissect(tvb, pinfo, tree)
  return tvb:captured_len()
end

wdp:register_heuristic("udp", function(tvb, pinfo, tree)
  if not checks.is_likely(tvb) then return false end
  pinfo.conversation = wdp
  dissect(tvb, pinfo, tree)
  return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(wdp)
