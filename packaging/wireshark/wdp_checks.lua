-- What a receiver of WDP checks: the second part of wdp.lua, which loads it from its own folder. Each check gives the
-- name that weft counts a drop under, or nil; the capture may have the beginning alone, of which nothing is said then.

local names = ...

-- --- CRC32C (spec/wdp 2.3): over the whole payload, bytes 12 to 15 taken as 0, stored least significant byte first

-- Lua 5.1 and 5.2 have a library for it, 5.3 and later an operator that the others cannot read.
local xor = (bit32 and bit32.bxor) or (bit and bit.bxor) or load("return function(a, b) return a ~ b end")()
local WORD = 4294967296

local crc_table = {}
for i = 0, 255 do
  local r = i
  for _ = 1, 8 do
    local odd = r % 2 == 1
    r = math.floor(r / 2)
    if odd then r = xor(r, 0x82f63b78) % WORD end
  end
  crc_table[i] = r
end

local function crc32c(bytes)
  local r = 0xffffffff
  for i = 1, #bytes do
    local b = (i > 12 and i <= 16) and 0 or string.byte(bytes, i)
    r = xor(math.floor(r / 256), crc_table[xor(r % 256, b) % 256]) % WORD
  end
  return xor(r, 0xffffffff) % WORD
end

-- --- A datagram, of which the capture may have the beginning alone

local View = {}
View.__index = View

local function view(tvb)
  return setmetatable({ tvb = tvb, size = tvb:reported_len(), kept = tvb:captured_len() }, View)
end

function View:has(offset, n) return offset + n <= self.kept end
function View:u8(offset) return self.tvb(offset, 1):uint() end
function View:u16(offset) return self.tvb(offset, 2):uint() end
function View:u32(offset) return self.tvb(offset, 4):uint() end
-- Shows a field where it is there; nil where it is not.
function View:add(tree, name, offset, n)
  if n < 0 or not self:has(offset, n) then return nil end
  return tree:add(names.fields[name], self.tvb(offset, n))
end
-- The same of what may be cut, and is nothing when it is empty.
function View:add_bytes(tree, name, offset, n)
  n = math.min(n, self.kept - offset)
  if n > 0 then tree:add(names.fields[name], self.tvb(offset, n)) end
end

local function has_flag(bits, flag) return math.floor(bits / flag) % 2 == 1 end

-- --- UC and RD data (spec/wdp-uc 2), the messages of spec/wdp-uc 5 and spec/wdp-rd 6

local LEGAL = {
  [1] = { [0] = true, true, true, true, true, true, true },
  [3] = { [0] = true, true, true, true, true, true, true, true, [10] = true, [11] = true },
}
local TAGGED = { [0] = true, [2] = true }

local function check_data(v, class)
  if v.size < 48 then return "too_short" end
  if not v:has(0, 48) then return nil end
  local ddp, rdmap, stride = v:u8(28), v:u8(29), v:u16(30)
  local mo, mlen = v:u32(20), v:u32(24)
  local opcode, last = rdmap % 16, has_flag(ddp, 0x40)
  if ddp % 4 ~= 1 then return "ddp_version" end
  if math.floor(rdmap / 64) ~= 1 then return "rdmap_version" end
  if not LEGAL[class][opcode] then return "bad_opcode" end
  if has_flag(ddp, 0x80) ~= (TAGGED[opcode] or false) then return "tag_mismatch" end
  if stride > 65456 then return "bad_stride" end
  if opcode == 7 and (v:u8(2) == 0) ~= (v:u8(3) == 0) then return "index_mismatch" end
  if opcode == 7 and v:u8(2) ~= 0 then
    if v.size ~= 48 then return "length_mismatch" end
    if not last then return "last_mismatch" end
    if stride == 0 then return "bad_stride" end
    if mo % stride ~= 0 then return "misaligned_offset" end
    if mlen ~= 0 then return "message_length" end
    return nil
  end
  if opcode == 1 then
    if v.size ~= 56 then return "length_mismatch" end
    if not last then return "last_mismatch" end
    if not v:has(48, 8) then return nil end
    local range = v:u32(48)
    if mo + range > mlen or (range == 0 and mlen ~= 0) then return "read_range" end
    return nil
  end
  if stride == 0 then return "bad_stride" end
  if mo % stride ~= 0 then return "misaligned_offset" end
  if mo >= mlen and (mo ~= 0 or mlen ~= 0) then return "offset_beyond_message" end
  local whole = { [10] = mlen == 52, [11] = mlen == 12, [7] = mlen % 12 == 0 }
  if whole[opcode] ~= nil and not (whole[opcode] and mlen <= stride) then return "message_length" end
  local n = math.min(stride, mlen - mo)
  if v.size ~= 48 + n then return "length_mismatch" end
  if last ~= (mo + n == mlen) then return "last_mismatch" end
  return nil
end

-- --- UD (spec/wdp-ud 2)

local function check_ud(v)
  if v.size < 32 then return "too_short" end
  if not v:has(0, 32) then return nil end
  local ddp, rdmap = v:u8(24), v:u8(25)
  local opcode = rdmap % 16
  if ddp % 4 ~= 1 then return "ddp_version" end
  if math.floor(rdmap / 64) ~= 1 then return "rdmap_version" end
  if opcode ~= 3 and opcode ~= 5 then return "bad_opcode" end
  if has_flag(ddp, 0x80) then return "tag_mismatch" end
  if not has_flag(ddp, 0x40) then return "last_mismatch" end
  if v.size ~= 32 + v:u16(26) then return "length_mismatch" end
  if v:u8(2) ~= v:u8(19) then return "index_mismatch" end
  return nil
end

-- --- RDACK (spec/wdp-rd 4)

local function check_ack(v, crc)
  if v.size < 36 then return "too_short" end
  if crc == "Absent" then return "crc_missing" end
  if crc == "Bad" then return "bad_crc" end
  if not v:has(0, 36) then return nil end
  if v:u8(2) ~= 0 or v:u8(3) ~= 0 then return "index_mismatch" end
  if v:u16(26) > 32 then return "too_many_sack_words" end
  if v.size ~= 36 + 4 * v:u16(26) then return "length_mismatch" end
  return nil
end

-- --- Bundles (spec/wdp-rd 6.7)

-- Calls f(view, offset) for each part that is there whole; returns why there are no more, if that is wrong.
local function each_part(v, f)
  local at = 16
  if v.size == 16 then return "length_mismatch" end
  while at < v.size do
    if v.size - at < 4 then return "length_mismatch" end
    if not v:has(at, 4) then return nil end
    local n = v:u16(at)
    if n > v.size - at - 4 then return "length_mismatch" end
    if not v:has(at + 4, n) then return nil end
    local reason = n < 16 and "too_short" or f(view(v.tvb(at + 4, n):tvb()), at + 4, at + 4 + n == v.size)
    if reason then return reason end
    at = at + 4 + n
  end
  return nil
end

local function check_part(part, last)
  local class = math.floor(part:u8(1) / 16)
  if math.floor(part:u8(0) / 16) ~= 0xd then return "not_wdp" end
  if part:u8(0) % 16 ~= 1 then return "other_version" end
  if class > 5 then return "unknown_class" end
  if class == 3 then return check_data(part, 3) end
  if class ~= 4 or not last then return "wrong_class" end
  local crc = not has_flag(part:u8(1), 8) and "Absent" or crc32c(part.tvb:raw(0, part.size)) == part.tvb(12, 4):le_uint() and "Good" or "Bad"
  return check_ack(part, crc)
end

local function check_bundle(v)
  if v:has(2, 2) and (v:u8(2) ~= 0 or v:u8(3) ~= 0) then return "index_mismatch" end
  return each_part(v, function(part, _, last) return check_part(part, last) end)
end

-- --- CTL (spec/wdp 3.1)

local OWN = { [7] = 4, [9] = 4, [10] = 12, [13] = 48 }
local function padded(n) return n + (4 - n % 4) % 4 end

local function check_ctl(v, crc)
  if v.size < 64 then return "too_short" end
  if crc == "Absent" then return "crc_missing" end
  if crc == "Bad" then return "bad_crc" end
  if not v:has(0, 64) then return nil end
  local kind = v:u8(8)
  if not names.types[kind] then return "unknown_ctl_type" end
  if v:u16(10) ~= v.size then return "length_mismatch" end
  if kind == 1 and v.size < 256 then return "request_not_padded" end
  if v:u32(16) == 0 and (kind == 1 or (kind == 2 and v:u8(32) ~= 4)) then return "zero_token" end
  if kind == 6 and v:u32(60) > 30000 then return "wait_too_long" end
  local pdlen, tlvlen = v:u16(56), v:u16(58)
  if pdlen > 512 then return "private_data_too_long" end
  local at = 64 + (OWN[kind] or 0) + padded(pdlen)
  if at + tlvlen > v.size then return "parts_too_long" end
  local stop = at + tlvlen
  while at < stop do
    if stop - at < 4 then return "bad_tlv" end
    if not v:has(at, 4) then return nil end
    local n = padded(v:u16(at + 2))
    if stop - at - 4 < n then return "bad_tlv" end
    at = at + 4 + n
  end
  return nil
end

-- ---

-- Magic and version, a class that exists, and of what follows enough to tell it from chance. Once it was found on a pair
-- of ports, all that passes there is WDP, and bad datagrams are shown as such.
local function is_likely(tvb)
  local v = view(tvb)
  if v.size < 32 or v.kept < 32 or v:u8(0) ~= 0xd1 then return false end
  local class, crc = math.floor(v:u8(1) / 16), has_flag(v:u8(1), 8)
  if class == 0 then return crc and names.types[v:u8(8)] ~= nil and v:u16(10) == v.size end
  if class == 1 or class == 3 then return v.size >= 48 and v:u8(28) % 4 == 1 and math.floor(v:u8(29) / 64) == 1 end
  if class == 2 then return v:u8(24) % 4 == 1 and math.floor(v:u8(25) / 64) == 1 and v.size == 32 + v:u16(26) end
  if class == 5 then return v:u8(2) == 0 and v:u8(3) == 0 and v:u16(16) <= v.size - 20 and v:u8(20) == 0xd1 end
  return class == 4 and crc and v:u16(26) <= 32 and v.size == 36 + 4 * v:u16(26)
end

return {
  view = view, crc32c = crc32c, has_flag = has_flag, padded = padded, own = OWN, is_likely = is_likely,
  data = check_data, ud = check_ud, ack = check_ack, ctl = check_ctl, bundle = check_bundle, each_part = each_part,
}
