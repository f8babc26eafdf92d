/** What a frame carries, by RFC 6455. */
export const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** A whole message, of one or more frames, or a control frame. */
export type SocketMessage =
  | { type: 'text'; text: string }
  | { type: 'binary'; data: Uint8Array }
  | { type: 'ping' | 'pong'; data: Uint8Array }
  | { type: 'close'; code: number; reason: string }

/** A peer broke the protocol or a limit: the connection ends with this code. */
export class SocketFailure extends Error {
  readonly code: number

  constructor(code: number, reason: string) {
    super(reason)
    this.code = code
  }
}

/** Close codes of RFC 6455. */
export const closeCode = {
  normal: 1000, goingAway: 1001, protocol: 1002, noStatus: 1005, abnormal: 1006, invalidText: 1007, tooLarge: 1009,
}

const maxControlBytes = 125

interface OpenFrame {
  fin: boolean
  opcode: number
  mask: Uint8Array
  /** Bytes of the payload that are still to come. */
  left: number
  payload: Uint8Array
}

/** Reads the frames that a client sends. A message is complete when its last frame is; control frames may stand between its frames. */
export class FrameReader {
  readonly #maxBytes: number
  #bytes: Uint8Array = new Uint8Array()
  #frame: OpenFrame | undefined
  /** The frames of a message whose last one has not come. */
  #pieces: Uint8Array[] = []
  #piecesBytes = 0
  #kind: number | undefined
  #closed = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds bytes. `next()` then gives the messages that are complete. */
  push(bytes: Uint8Array): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : joined([this.#bytes, bytes])
  }

  /** The next message that is complete; undefined where bytes are missing. Throws a `SocketFailure`. */
  next(): SocketMessage | undefined {
    while (!this.#closed) {
      this.#frame ??= this.#readHead()
      if (!this.#frame) return undefined
      if (!this.#readPayload(this.#frame)) return undefined
      const frame = this.#frame
      this.#frame = undefined
      const message = frame.opcode >= opcode.close ? controlMessage(frame) : this.#assemble(frame)
      // What follows a close is not read.
      this.#closed = message?.type === 'close'
      if (message) return message
    }
    return undefined
  }

  #readHead(): OpenFrame | undefined {
    const bytes = this.#bytes
    const [first, second] = bytes
    if (first === undefined || second === undefined) return undefined
    const fin = (first & 0x80) !== 0
    const kind = first & 0x0f
    // Checked before the rest of the head is there: a peer that breaks the protocol need not complete its frame.
    this.#checkHead(first, kind, fin, second)
    const short = second & 0x7f
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    const headBytes = 2 + lengthBytes + 4
    if (bytes.length < headBytes) return undefined
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const length = lengthBytes === 2 ? BigInt(view.getUint16(2)) : lengthBytes === 8 ? view.getBigUint64(2) : BigInt(short)
    // Before any of it is kept.
    if (length + BigInt(this.#piecesBytes) > BigInt(this.#maxBytes)) {
      throw new SocketFailure(closeCode.tooLarge, `A message has at most ${this.#maxBytes} bytes.`)
    }
    this.#bytes = bytes.subarray(headBytes)
    const mask = bytes.subarray(headBytes - 4, headBytes)
    return { fin, opcode: kind, mask, left: Number(length), payload: new Uint8Array(Number(length)) }
  }

  #checkHead(first: number, kind: number, fin: boolean, second: number): void {
    if ((first & 0x70) !== 0) throw broken('No extension was negotiated.')
    const isControl = kind >= opcode.close
    if (kind > opcode.pong || (kind > opcode.binary && !isControl)) throw broken('The opcode is not known.')
    if ((second & 0x80) === 0) throw broken('Frames of a client are masked.')
    if (isControl && (!fin || (second & 0x7f) > maxControlBytes)) throw broken('A control frame is one frame of at most 125 bytes.')
    if (!isControl && (kind === opcode.continuation) !== (this.#kind !== undefined)) {
      throw broken(kind === opcode.continuation ? 'There is no message to continue.' : 'The message before has not ended.')
    }
  }

  /** Takes what is there of the payload. Returns whether it is complete. */
  #readPayload(frame: OpenFrame): boolean {
    const { mask, payload } = frame
    const taken = this.#bytes.subarray(0, frame.left)
    const from = payload.length - frame.left
    for (let i = 0; i < taken.length; i++) payload[from + i] = (taken[i] ?? 0) ^ (mask[(from + i) % 4] ?? 0)
    this.#bytes = this.#bytes.subarray(taken.length)
    frame.left -= taken.length
    return frame.left === 0
  }

  #assemble({ fin, opcode: kind, payload }: OpenFrame): SocketMessage | undefined {
    this.#kind ??= kind
    this.#pieces.push(payload)
    this.#piecesBytes += payload.length
    if (!fin) {
      // Frames without bytes would have no limit.
      if (this.#pieces.length > maxFrames) throw new SocketFailure(closeCode.tooLarge, `A message has at most ${maxFrames} frames.`)
      return undefined
    }
    const data = this.#pieces.length === 1 ? payload : joined(this.#pieces)
    const isText = this.#kind === opcode.text
    this.#pieces = []
    this.#piecesBytes = 0
    this.#kind = undefined
    return isText ? { type: 'text', text: utf8(data) } : { type: 'binary', data }
  }
}

const maxFrames = 1_024

function controlMessage({ opcode: kind, payload }: OpenFrame): SocketMessage {
  if (kind !== opcode.close) return { type: kind === opcode.ping ? 'ping' : 'pong', data: payload }
  if (payload.length === 0) return { type: 'close', code: closeCode.noStatus, reason: '' }
  if (payload.length === 1) throw broken('A close code has two bytes.')
  const code = new DataView(payload.buffer, payload.byteOffset).getUint16(0)
  if (!isCloseCode(code)) throw broken('The close code is not valid.')
  return { type: 'close', code, reason: utf8(payload.subarray(2)) }
}

/** Codes that a peer may send: those of the RFC and of its registry, and those of applications. */
function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new SocketFailure(closeCode.invalidText, 'A text is not UTF-8.')
  }
}

/** A frame of a server: one message, unmasked. */
export function encodeFrame(kind: number, payload: Uint8Array): Uint8Array {
  const { length } = payload
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const frame = new Uint8Array(2 + lengthBytes + length)
  const view = new DataView(frame.buffer)
  frame[0] = 0x80 | kind
  frame[1] = lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127
  if (lengthBytes === 2) view.setUint16(2, length)
  else if (lengthBytes === 8) view.setBigUint64(2, BigInt(length))
  frame.set(payload, 2 + lengthBytes)
  return frame
}

/** The payload of a close frame. A reason that is too long is cut at a character. */
export function closePayload(code: number, reason: string): Uint8Array {
  if (code === closeCode.noStatus) return new Uint8Array()
  const text = new Uint8Array(maxControlBytes - 2)
  const { written } = new TextEncoder().encodeInto(reason, text)
  const payload = new Uint8Array(2 + written)
  new DataView(payload.buffer).setUint16(0, code)
  payload.set(text.subarray(0, written), 2)
  return payload
}

function broken(reason: string): SocketFailure {
  return new SocketFailure(closeCode.protocol, reason)
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
