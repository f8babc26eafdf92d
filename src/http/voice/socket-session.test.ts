import { expect, it } from 'vitest'
import { silentLogger } from '../../base/logger.ts'
import type { ServerSocket } from '../../socket/server-socket.ts'
import { virtualClock } from '../../testing/virtual-clock.ts'
import type { VoiceSession } from '../../voice/contract.ts'
import { SocketSession, SoundGate } from './socket-session.ts'

it('[Z4.8] a client that sends messages without sound while the session is behind is read no more, and goes on when it is not', async () => {
  const clock = virtualClock()
  const taken = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  let turns = 0
  const session = {
    id: 's', beginTurn: () => turns++, endTurn() {}, write: () => taken.promise, close: async () => closed.resolve(),
    events: (async function* (): AsyncGenerator<never> {
      await closed.promise
      yield* []
    })(),
  } as unknown as VoiceSession
  const options = {
    clock, logger: silentLogger, inputRate: 24_000, lingerMs: 1_000, idleMs: 60_000, maxMs: 60_000, onEnd: () => {},
    showError: ({ code, message, retryable }: { code: string; message: string; retryable: boolean }) => ({ code, message, retryable }),
  }
  const connection = new SocketSession(session, new SoundGate(), options)
  connection.attach({ send: () => undefined, close() {} } as unknown as ServerSocket, 0, false)
  void connection.sound(new Uint8Array(2))
  let sent = 0
  let waits: Promise<void> | undefined
  // A connection sends nothing more while it waits.
  while (!waits && sent < 100_000) {
    waits = sent % 2 === 0 ? connection.message({ type: 'begin' }) : connection.sound(new Uint8Array())
    sent++
  }
  expect(sent).toBeLessThan(2_000)
  expect(turns).toBe(0)
  taken.resolve()
  await waits
  await expect.poll(() => turns).toBe(Math.ceil(sent / 2))
  await connection.end()
})
