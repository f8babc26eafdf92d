/** A message of protocol buffers, field after field. */
export type Field = Uint8Array

const encoder = new TextEncoder()

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/** A whole number of at least 0, or -1. */
export function number(field: number, value: number): Field {
  return Uint8Array.from([...varint(BigInt(field) << 3n), ...varint(BigInt.asUintN(64, BigInt(value)))])
}

export function float(field: number, value: number): Field {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setFloat32(0, value, true)
  return joined(Uint8Array.from(varint((BigInt(field) << 3n) | 5n)), bytes)
}

/** A text, bytes, or a message of its own. */
export function part(field: number, value: string | Uint8Array): Field {
  const bytes = typeof value === 'string' ? encoder.encode(value) : value
  return joined(Uint8Array.from([...varint((BigInt(field) << 3n) | 2n), ...varint(BigInt(bytes.length))]), bytes)
}

function varint(value: bigint): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return [...bytes, Number(rest)]
    bytes.push(Number(rest & 0x7fn) | 0x80)
  }
}
