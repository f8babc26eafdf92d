import { createHash } from 'node:crypto'

/** What travels in one notification: a message, or a part of one. */
export interface Envelope {
  /** The process, and the number of the notification among those that it sent to this channel. */
  hub: string
  number: number
  kind: 'message' | 'ping' | 'here' | 'answer' | 'gone'
  from: string
  part?: number
  parts?: number
}

/** A notification has at most 7,999 bytes. */
const maxPayload = 7_900
const maxHead = 700

/** The payloads of a text. Long ones are split between characters. */
export function pack(head: Omit<Envelope, 'number'>, text: string, number: () => number): string[] {
  const parts = split(text, maxPayload - maxHead)
  return parts.map((part, index) => {
    const envelope: Envelope = { ...head, number: number(), ...(parts.length > 1 && { part: index, parts: parts.length }) }
    return `${JSON.stringify(envelope)}\n${part}`
  })
}

function split(text: string, size: number): string[] {
  if (text.length * 3 <= size) return [text]
  const bytes = Buffer.from(text)
  const parts: string[] = []
  for (let from = 0; from < bytes.length;) {
    let to = Math.min(bytes.length, from + size)
    // Not within a character: its later bytes begin with the bits 10.
    while (to < bytes.length && ((bytes[to] ?? 0) & 0xc0) === 0x80) to -= 1
    parts.push(bytes.toString('utf8', from, to))
    from = to
  }
  return parts.length === 0 ? [''] : parts
}

export function unpack(payload: string): { head: Envelope; text: string } | undefined {
  const end = payload.indexOf('\n')
  try {
    return { head: JSON.parse(payload.slice(0, end)) as Envelope, text: payload.slice(end + 1) }
  } catch {
    return undefined
  }
}

/** Names of channels have at most 63 bytes. */
export function channelOf(namespace: string, id?: string): string {
  return `heed_${createHash('sha256').update(JSON.stringify([namespace, id ?? null])).digest('hex').slice(0, 40)}`
}

/** The number of the advisory lock that each process of a namespace holds. */
export function presenceOf(namespace: string): string {
  return String(createHash('sha256').update(`presence ${namespace}`).digest().readBigInt64BE(0))
}
