import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { toneSpeech, toneTranscription } from '../voice/voices.ts'
import { askEverything, seed } from './fuzzing.ts'
import { ServerProcess } from './killable.ts'
import { served } from './serving.ts'

/** Requests for each route. HEED_FUZZ_RUNS=40 is the campaign, `npm run test:fuzz`. */
const runs = Number(process.env.HEED_FUZZ_RUNS ?? 8)

const voice = () => new CompositeVoice({ input: toneTranscription(), output: toneSpeech() })
const agent = () => new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), voice: voice() })

describe('bad input over HTTP', () => {
  it('[H4.1] is refused by name on every route, whatever its shape', async () => {
    // What is asked here is the handler itself: that costs a third of what it costs over sockets, which the next test tries.
    const heed = new Heed({ agents: { guide: agent() }, storage: new InMemoryStore(), logger: silentLogger })
    const handler = createHandler(heed, { auth: 'local' })
    onTestFinished(async () => {
      handler.close()
      await heed.close()
    })
    const ask = (path: string, init?: RequestInit) => handler(new Request(`http://localhost/api${path}`, init))
    await askEverything(ask, { runs })
  })

  it('[H4.1] survives bytes that are no HTTP, and bodies that are too large, too deep or no JSON', async () => {
    const { ask, server } = await served({ guide: agent() }, { maxBodyBytes: 10_000 })
    const post = (body: BodyInit, headers: Record<string, string> = {}) =>
      ask('/agents/guide/send-message', { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers }, ...({ duplex: 'half' } as object) })
    const code = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]
    expect(await code(await post('x'.repeat(20_000)))).toEqual([413, 'too_large'])
    const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(4_096).fill(32)) })
    expect(await code(await post(endless))).toEqual([413, 'too_large'])
    expect(await code(await post('['.repeat(5_000)))).toEqual([400, 'invalid_argument'])
    expect(await code(await post('{"message":'))).toEqual([400, 'invalid_argument'])
    expect(await code(await post('{"message":"x","threadId":"t","resourceId":"r"}', { 'idempotency-key': 'a b' }))).toEqual([400, 'invalid_argument'])

    await sendBytes(server.url)
    expect((await ask('/health')).status).toBe(200)
  })

  it('[H4.1] takes down no server that listens and stores, and little memory', { timeout: 600_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    const server = new ServerProcess(join(folder, 'heed.db'))
    onTestFinished(async () => {
      await server.kill()
      rmSync(folder, { recursive: true, force: true })
    })
    // What it kept of all this would end it.
    const url = await server.start({ heapMb: 64 })
    const ask = (path: string, init?: RequestInit) => fetch(`${url}/api${path}`, init)
    await askEverything(ask, { runs: Math.ceil(runs / 3) })
    const resident = async () => Number(/^process_resident_memory_bytes (\d+)$/m.exec(await (await ask('/metrics')).text())?.[1])
    const before = await resident()
    await askEverything(ask, { runs: Math.ceil(runs / 3), seed: seed + 1 })
    await sendBytes(url)
    expect(await resident()).toBeLessThan(before + 64 * 1024 * 1024)
    expect((await ask('/ready')).status).toBe(200)
    expect(await server.kill('SIGTERM')).toEqual([0, null])
  })
})

/** To a socket, and no HTTP. */
async function sendBytes(url: string): Promise<void> {
  const { port } = new URL(url)
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), async (bytes) => {
      const socket = createConnection(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.end(bytes)
      socket.resume()
      await closed
    }),
    { seed, numRuns: 50 },
  )
}
