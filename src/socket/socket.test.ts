import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../base/clock.ts'
import { virtualClock } from '../testing/index.ts'
import { closePayload, encodeFrame, FrameReader, opcode, SocketFailure, type SocketMessage } from './frames.ts'
import { checkHandshake, offeredProtocols, openingHead } from './handshake.ts'
import { ServerSocket, type ServerSocketOptions } from './server-socket.ts'

/** A frame of a client. */
function frame(kind: number, payload: Uint8Array | string, { fin = true, masked = true, reserved = 0 } = {}): Buffer {
  const bytes = Buffer.from(payload)
  const head = bytes.length < 126 ? [bytes.length] : bytes.length < 65_536 ? [126, bytes.length >> 8, bytes.length & 255] : [127, 0, 0, 0, 0, bytes.length >>> 24, (bytes.length >> 16) & 255, (bytes.length >> 8) & 255, bytes.length & 255]
  const mask = [0x12, 0x34, 0x56, 0x78]
  head[0] = (head[0] ?? 0) | (masked ? 0x80 : 0)
  return Buffer.concat([Buffer.from([(fin ? 0x80 : 0) | reserved | kind, ...head, ...(masked ? mask : [])]), bytes.map((byte, i) => (masked ? byte ^ (mask[i % 4] ?? 0) : byte))])
}

const closing = (code: number, reason: string | Uint8Array = '') => frame(opcode.close, Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]))

/** What a reader makes of bytes that come in pieces of so many. */
function read(bytes: Uint8Array, pieces: number, maxBytes = 1_000_000): { messages: SocketMessage[]; failed?: number } {
  const reader = new FrameReader(maxBytes)
  const messages: SocketMessage[] = []
  try {
    for (let at = 0; at < bytes.length; at += pieces) {
      reader.push(bytes.subarray(at, at + pieces))
      for (let message = reader.next(); message; message = reader.next()) messages.push(message)
    }
  } catch (error) {
    if (!(error instanceof SocketFailure)) throw error
    return { messages, failed: error.code }
  }
  return { messages }
}

/** Every case in one piece, byte by byte, and in pieces that divide heads. */
const cuts = [1, 2, 3, 7, 1_000, 10_000_000]

describe('frames of a client', () => {
  const good: Array<[string, Buffer, object[]]> = [
    ...[0, 1, 125, 126, 127, 65_535, 65_536, 200_000].flatMap((length): Array<[string, Buffer, object[]]> => [
      [`a text of ${length} bytes`, frame(opcode.text, 'x'.repeat(length)), [{ type: 'text', text: 'x'.repeat(length) }]],
      [`${length} bytes`, frame(opcode.binary, Buffer.alloc(length, 7)), [{ type: 'binary', data: new Uint8Array(length).fill(7) }]],
    ]),
    ['a text that is divided within a character', Buffer.concat([frame(opcode.text, Buffer.from('κόσμε').subarray(0, 3), { fin: false }), frame(opcode.continuation, Buffer.from('κόσμε').subarray(3))]), [{ type: 'text', text: 'κόσμε' }]],
    ['empty frames of a text', Buffer.concat([frame(opcode.text, '', { fin: false }), frame(opcode.continuation, '', { fin: false }), frame(opcode.continuation, 'a')]), [{ type: 'text', text: 'a' }]],
    ['a ping between the frames of a text', Buffer.concat([frame(opcode.text, 'He', { fin: false }), frame(opcode.ping, 'p'), frame(opcode.continuation, 'llo')]), [{ type: 'ping', data: new Uint8Array(Buffer.from('p')) }, { type: 'text', text: 'Hello' }]],
    ['a ping of 125 bytes, and a pong that was not asked for', Buffer.concat([frame(opcode.ping, 'p'.repeat(125)), frame(opcode.pong, '')]), [{ type: 'ping', data: new Uint8Array(Buffer.from('p'.repeat(125))) }, { type: 'pong', data: new Uint8Array() }]],
    ['a mark at the begin of a text', frame(opcode.text, '\uFEFFa'), [{ type: 'text', text: '\uFEFFa' }]],
    ['nothing after a close', Buffer.concat([frame(opcode.close, ''), frame(opcode.text, 'late')]), [{ type: 'close', code: 1005, reason: '' }]],
    ...[1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 3999, 4000, 4999].map((code): [string, Buffer, object[]] => [`close ${code}`, closing(code, 'bye'), [{ type: 'close', code, reason: 'bye' }]]),
  ]
  it.each(good)('[Z4.2] %s', (_title, bytes, messages) => {
    for (const pieces of cuts) {
      if (bytes.length / pieces > 20_000) continue
      expect(read(bytes, pieces)).toEqual({ messages })
    }
  })

  const bad: Array<[string, Buffer, number]> = [
    ['a frame without a mask', frame(opcode.text, 'a', { masked: false }), 1002],
    ...[0x40, 0x20, 0x10].map((reserved): [string, Buffer, number] => [`the reserved bit ${reserved}`, frame(opcode.text, 'a', { reserved }), 1002]),
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((kind): [string, Buffer, number] => [`the opcode ${kind}`, frame(kind, ''), 1002]),
    ['a ping of 126 bytes', frame(opcode.ping, 'p'.repeat(126)), 1002],
    ['a ping in two frames', frame(opcode.ping, 'p', { fin: false }), 1002],
    ['a close in two frames', frame(opcode.close, '', { fin: false }), 1002],
    ['a continuation of nothing', frame(opcode.continuation, 'a'), 1002],
    ['a continuation after the end', Buffer.concat([frame(opcode.text, 'a', { fin: false }), frame(opcode.continuation, 'b'), frame(opcode.continuation, 'c')]), 1002],
    ['a text within a text', Buffer.concat([frame(opcode.text, 'a', { fin: false }), frame(opcode.text, 'b')]), 1002],
    ['bytes within a text', Buffer.concat([frame(opcode.text, 'a', { fin: false }), frame(opcode.binary, 'b')]), 1002],
    ['a close with half a code', frame(opcode.close, 'a'), 1002],
    ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code): [string, Buffer, number] => [`close ${code}`, closing(code), 1002]),
    ['a reason that is not UTF-8', closing(1000, Buffer.from([0xce, 0xba, 0xff])), 1007],
    ...['ff', 'c0af', 'eda080', 'f4908080', 'f888808080', '80', 'cebae1bd'].map((hex): [string, Buffer, number] => [`the text ${hex}, which is not UTF-8`, frame(opcode.text, Buffer.from(hex, 'hex')), 1007]),
    ['a text that is UTF-8 in no frame', Buffer.concat([frame(opcode.text, Buffer.from('ceba', 'hex'), { fin: false }), frame(opcode.continuation, Buffer.from('ed', 'hex'), { fin: false }), frame(opcode.continuation, Buffer.from('a080', 'hex'))]), 1007],
    ['a message that is too large', frame(opcode.binary, Buffer.alloc(1_001)), 1009],
    ['frames that are too large together', Buffer.concat([frame(opcode.binary, Buffer.alloc(600), { fin: false }), frame(opcode.continuation, Buffer.alloc(600))]), 1009],
    ['more empty frames than a message may have', Buffer.concat([frame(opcode.binary, '', { fin: false }), ...Array.from({ length: 1_100 }, () => frame(opcode.continuation, '', { fin: false }))]), 1009],
    ['a length beyond all memory', Buffer.from([0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]), 1009],
  ]
  it.each(bad)('[Z4.2] refuses %s', (_title, bytes, code) => {
    for (const pieces of cuts) expect(read(bytes, pieces, 1_000).failed).toBe(code)
  })

  it('[Z4.2] refuses a length before its bytes are there', () => {
    const reader = new FrameReader(1_000)
    reader.push(frame(opcode.binary, Buffer.alloc(5_000)).subarray(0, 8))
    expect(() => reader.next()).toThrow(SocketFailure)
  })
})

/** A server whose sockets answer every message with itself. */
async function echo(options: Partial<ServerSocketOptions> = {}) {
  const closes: Array<[number, string]> = []
  const sockets: ServerSocket[] = []
  const server = createServer()
  server.on('upgrade', (incoming, stream, head) => {
    const request = { method: incoming.method ?? '', header: (name: string) => (incoming.headers[name] as string | undefined) ?? null }
    checkHandshake(request)
    stream.write(openingHead(request, offeredProtocols(request)[0]))
    const socket: ServerSocket = new ServerSocket(stream, head, {
      clock: systemClock, maxMessageBytes: 100_000, pingMs: 60_000,
      onMessage: (message) => socket.send(message),
      onClose: (code, reason) => closes.push([code, reason]),
      ...options,
    })
    sockets.push(socket)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, closes, sockets, url: `ws://127.0.0.1:${port}` }
}

/** A client that sends bytes as they are, and keeps what comes after the head of the response. */
async function raw(port: number) {
  const socket: Socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => (text = Buffer.concat([text, bytes])))
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
  const ended = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
  })
  const received = () => text.subarray(text.indexOf('\r\n\r\n') + 4)
  await expect.poll(() => text.includes('\r\n\r\n')).toBe(true)
  return { socket, ended, received, head: () => text.subarray(0, text.indexOf('\r\n\r\n')).toString() }
}

describe('a socket of a server', () => {
  it('[Z4.1] answers the handshake of the RFC with its accept, and names the first protocol', async () => {
    const { port, url } = await echo()
    expect((await raw(port)).head()).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    const socket = new WebSocket(url, ['a', 'b'])
    await new Promise((resolve) => {
      socket.addEventListener('open', resolve, { once: true })
    })
    expect(socket.protocol).toBe('a')
    socket.close()
  })

  it('[Z4.1] refuses what is no handshake', () => {
    const headers: Record<string, string> = { connection: 'keep-alive, Upgrade', upgrade: 'WebSocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
    const request = (changed: Record<string, string | undefined>, method = 'GET') => ({ method, header: (name: string) => ({ ...headers, ...changed })[name] ?? null })
    expect(() => checkHandshake(request({}))).not.toThrow()
    const refused = (changed: Record<string, string | undefined>, method?: string) => {
      try {
        checkHandshake(request(changed, method))
      } catch (error) {
        return (error as { code: string }).code
      }
      return 'taken'
    }
    expect(refused({}, 'POST')).toBe('method_not_allowed')
    expect([refused({ connection: 'close' }), refused({ upgrade: 'h2c' }), refused({ upgrade: undefined })]).toEqual(Array.from({ length: 3 }, () => 'upgrade_required'))
    expect([refused({ 'sec-websocket-version': '8' }), refused({ 'sec-websocket-version': undefined })]).toEqual(['upgrade_required', 'upgrade_required'])
    expect([refused({ 'sec-websocket-key': 'short' }), refused({ 'sec-websocket-key': undefined })]).toEqual(['invalid_argument', 'invalid_argument'])
  })

  it('[Z4.2] speaks with the client of the platform: texts and bytes of all lengths, both ways', async () => {
    const { url, closes } = await echo()
    const socket = new WebSocket(url)
    socket.binaryType = 'arraybuffer'
    const got: unknown[] = []
    socket.addEventListener('message', ({ data }: { data: unknown }) => got.push(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer)))
    await new Promise((resolve) => {
      socket.addEventListener('open', resolve, { once: true })
    })
    const sent = [0, 1, 125, 126, 65_535, 65_536, 100_000].flatMap((length) => ['é'.repeat(length / 2), new Uint8Array(length).fill(3)])
    for (const message of sent) socket.send(message)
    await expect.poll(() => got.length).toBe(sent.length)
    expect(got).toEqual(sent)
    socket.close(4_001, 'done')
    await expect.poll(() => closes).toEqual([[4_001, 'done']])
  })

  it('[Z4.2] answers a ping with its data, and a close with its code; the connection then ends', async () => {
    const { port, closes } = await echo()
    const { socket, received, ended } = await raw(port)
    socket.write(Buffer.concat([frame(opcode.ping, 'hi'), closing(1000, 'bye')]))
    await ended
    expect(received()).toEqual(Buffer.concat([encodeFrame(opcode.pong, Buffer.from('hi')), encodeFrame(opcode.close, closePayload(1000, ''))]))
    await expect.poll(() => closes).toEqual([[1000, 'bye']])
  })

  it.each([['breaks the protocol', frame(opcode.text, 'a', { masked: false }), 1002], ['sends too much', frame(opcode.binary, Buffer.alloc(100_001)), 1009], ['sends no UTF-8', frame(opcode.text, Buffer.from([255])), 1007]])(
    '[Z4.2] a client that %s learns the code, and what it sends then is dropped',
    async (_what, bytes, code) => {
      const { port, closes } = await echo()
      const { socket, received, ended } = await raw(port)
      socket.write(Buffer.concat([bytes, frame(opcode.text, 'more')]))
      await ended
      expect(received().subarray(0, 1).toString('hex')).toBe('88')
      expect(received().readUInt16BE(2)).toBe(code)
      expect(received().length).toBe(2 + (received()[1] ?? 0))
      await expect.poll(() => closes[0]?.[0]).toBe(code)
    },
  )

  it('[Z4.3] reads no more while a message is being handled: the client can send no more than the network holds', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let handled = 0
    const { port } = await echo({ onMessage: () => (handled++ === 0 ? promise : undefined) })
    const { socket } = await raw(port)
    const message = frame(opcode.binary, Buffer.alloc(60_000))
    const count = 1_000
    let taken = 0
    for (let i = 0; i < count; i++) socket.write(message, () => taken++)
    await expect.poll(() => handled).toBe(1)
    // 60 MB don't fit into the buffers of a connection.
    let before = -1
    await expect.poll(() => {
      const isSame = taken === before
      before = taken
      return isSame
    }, { interval: 200 }).toBe(true)
    expect(taken).toBeLessThan(count)
    expect(handled).toBe(1)
    resolve()
    await expect.poll(() => handled).toBe(count)
  })

  it('[Z4.3] tells its sender when the connection is behind, and when it is not any more', async () => {
    const { port, sockets } = await echo()
    const { socket } = await raw(port)
    socket.pause()
    let sent = 0
    let behind: Promise<void> | undefined
    while (!behind) {
      behind = sockets[0]?.send(new Uint8Array(60_000))
      sent++
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
    expect(sent).toBeLessThan(1_000)
    expect(sockets[0]?.buffered).toBeGreaterThan(0)
    socket.resume()
    await behind
  })

  it('[Z4.4] pings, and gives up a client that stays silent; one that answers is kept', async () => {
    const clock = virtualClock()
    const { port, url, closes, sockets } = await echo({ clock, pingMs: 1_000 })
    const { received, ended } = await raw(port)
    const answering = new WebSocket(url)
    await new Promise((resolve) => {
      answering.addEventListener('open', resolve, { once: true })
    })
    for (let i = 0; i < 3; i++) {
      await clock.advance(1_000)
      // The answer of the other client has to arrive before the next ping.
      answering.send(`round ${i}`)
      await new Promise((resolve) => {
        answering.addEventListener('message', resolve, { once: true })
      })
    }
    await ended
    expect(received().toString('hex')).toBe('89008900')
    expect(closes).toEqual([[1006, '']])
    expect(sockets[1]?.isOpen).toBe(true)
    answering.close()
    await expect.poll(() => closes.length).toBe(2)
  })

  it('[Z4.4] a connection that is cut is over at once, and one whose client does not answer a close soon after', async () => {
    const clock = virtualClock()
    const { port, closes, sockets } = await echo({ clock })
    const cut = await raw(port)
    cut.socket.resetAndDestroy()
    await expect.poll(() => closes).toEqual([[1006, '']])
    await raw(port)
    sockets[1]?.close(1001, 'Going away.')
    expect(sockets[1]?.send('late')).toBeUndefined()
    await clock.advance(2_000)
    await expect.poll(() => closes).toEqual([[1006, ''], [1001, 'Going away.']])
  })
})
