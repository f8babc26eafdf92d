import { createHash } from 'node:crypto'
import type { Script } from './link.ts'

/*
 * The keys, below the prefix of the bus, all in one slot of a cluster:
 *   in:<process>        the stream of a process. It expires when its process no longer renews it.
 *   numbers:<process>   how many entries each other process has added to that stream, a hash.
 *   members:<namespace> the process of each connection, a hash. A member whose process has no stream is one of a dead process.
 *
 * A script is one step for everybody else: who is a member, the numbers and the entries always agree.
 */

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/**
 * Adds messages to the streams of those for whom they are: one entry for each process, with the number of the entry among those of this
 * sender. Arguments: the sender, its life, the most entries of a stream; then namespace, addressee or '', and text of each message.
 */
export const sendScript = script(`
local base, from = KEYS[1], ARGV[1]
local members, texts = {}, {}
for i = 4, #ARGV, 3 do
  local namespace, to, text = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local known = members[namespace]
  if not known then
    known = {}
    local found = redis.call('HGETALL', base .. 'members:' .. namespace)
    for j = 1, #found, 2 do known[found[j]] = found[j + 1] end
    members[namespace] = known
  end
  local receivers = {}
  if to == '' then
    for _, process in pairs(known) do receivers[process] = true end
  elseif known[to] then
    receivers[known[to]] = true
  end
  receivers[from] = nil
  for process in pairs(receivers) do
    texts[process] = texts[process] or {}
    table.insert(texts[process], text)
  end
end
for process, list in pairs(texts) do
  local inbox = base .. 'in:' .. process
  if redis.call('EXISTS', inbox) == 1 then
    local numbers = base .. 'numbers:' .. process
    local number = redis.call('HINCRBY', numbers, from, 1)
    if number == 1 then redis.call('PEXPIRE', numbers, redis.call('PTTL', inbox)) end
    redis.call('XADD', inbox, 'MAXLEN', '=', ARGV[3], '*', 'from', from, 'life', ARGV[2], 'number', number,
      'messages', '[' .. table.concat(list, ',') .. ']')
  end
end
return 1
`)

/**
 * Renews the stream of a process and its memberships, or makes them. Arguments: the process, '1' to begin with an empty stream, how long
 * the keys are kept, then namespace and id of each connection. Returns whether the stream is new, the id of its last entry, and namespace
 * and process of each peer.
 */
export const renewScript = script(`
local base, process = KEYS[1], ARGV[1]
local inbox, numbers = base .. 'in:' .. process, base .. 'numbers:' .. process
if ARGV[2] == '1' then redis.call('DEL', inbox) end
local isNew, last = redis.call('EXISTS', inbox) == 0, nil
if isNew then
  redis.call('DEL', numbers)
  last = redis.call('XADD', inbox, '*', 'from', process)
else
  local about = redis.call('XINFO', 'STREAM', inbox)
  for i = 1, #about, 2 do if about[i] == 'last-generated-id' then last = about[i + 1] end end
end
redis.call('PEXPIRE', inbox, ARGV[3])
redis.call('PEXPIRE', numbers, ARGV[3])
local peers, seen = {}, {}
for i = 4, #ARGV, 2 do
  local namespace, members = ARGV[i], base .. 'members:' .. ARGV[i]
  redis.call('HSET', members, ARGV[i + 1], process)
  redis.call('PEXPIRE', members, ARGV[3])
  if not seen[namespace] then
    seen[namespace] = {}
    local found = redis.call('HGETALL', members)
    for j = 1, #found, 2 do
      local other = found[j + 1]
      if other ~= process and redis.call('EXISTS', base .. 'in:' .. other) == 0 then
        redis.call('HDEL', members, found[j])
      elseif other ~= process and not seen[namespace][other] then
        seen[namespace][other] = true
        table.insert(peers, namespace)
        table.insert(peers, other)
      end
    end
  end
end
return { isNew and 1 or 0, last, peers }
`)

/** Removes connections of a process. Arguments: the process, '1' if it has no others, then namespace and id of each. */
export const leaveScript = script(`
local base, process = KEYS[1], ARGV[1]
for i = 3, #ARGV, 2 do redis.call('HDEL', base .. 'members:' .. ARGV[i], ARGV[i + 1]) end
if ARGV[2] == '1' then redis.call('DEL', base .. 'in:' .. process, base .. 'numbers:' .. process) end
return 1
`)

/** What `renewScript` returned. */
export interface Renewed {
  isNew: boolean
  last: string
  peers: Array<{ namespace: string; process: string }>
}

export function readRenewed(answer: unknown): Renewed {
  const [isNew, last, list] = answer as [number, string, string[]]
  const peers: Renewed['peers'] = []
  for (let index = 0; index < list.length; index += 2) peers.push({ namespace: list[index] ?? '', process: list[index + 1] ?? '' })
  return { isNew: isNew === 1, last, peers }
}

/** An entry of the stream of a process. */
export interface Entry {
  id: string
  from: string
  /** Changes when the sender dropped messages, or does not know what became of some. */
  life: string
  number: number
  /** Envelopes as JSON. */
  messages: string
}

/** The entries that XREAD or XREVRANGE returned. */
export function readEntries(found: ReadonlyArray<[id: string, fields: string[]]>): Entry[] {
  return found.map(([id, [, from = '', , life = '', , number = '0', , messages = '[]']]) => {
    return { id, from, life, number: Number(number), messages }
  })
}

/** Whether the entry `id` comes after `other`. */
export function isAfter(id: string, other: string): boolean {
  const [ms = 0, sequence = 0] = id.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}
