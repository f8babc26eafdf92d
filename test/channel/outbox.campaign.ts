import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { below, live } from '../crash/one-life.ts'
import { buildProgram } from '../crash/program.ts'
import { shiftMs } from '../watch/killed-process.ts'
import { localProvider, type SentRequest } from './local-provider.ts'
import type { Report } from './outbox-process.ts'

/** `HEED_REPLY_KILLS=260` runs the long form: as many kills with one process, and with four. docs/reliability.md has its last result. */
const kills = Number(process.env.HEED_REPLY_KILLS || 9)
/** How often the processes of one file are killed, all of them each time. */
const generations = 3
/** Of a life that is not killed, about. */
const callsOfLife = 110

/** A provider that accepts a reply once for each key, refuses what is answered to one message, and fails first for another. */
function provider() {
  const accepted: Array<{ key: string; text: string; path: string }> = []
  const failed = new Set<string>()
  const answer = ({ headers, body, path }: SentRequest) => {
    const key = String(headers['webhook-id'])
    const { text } = JSON.parse(body) as { text: string }
    if (text.includes('to refused')) return { status: 410, body: {} }
    accepted.push({ key, text, path })
    // It has the reply, and its answer is lost.
    if (text.includes('to shaky') && !failed.has(key)) {
      failed.add(key)
      return { status: 503, body: {} }
    }
    return { status: 200, body: { id: `at ${key}` } }
  }
  return { accepted, answer }
}

/** What is wrong after the last process of a file has come to the end. */
function problems({ replies, threads, dead }: Report, accepted: ReadonlyArray<{ key: string; text: string }>): string[] {
  const wrong: string[] = []
  const expectEqual = (what: string, actual: unknown, wanted: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(wanted)) wrong.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`)
  }
  const nameOf = (text = '') => /^Answer to (\w+),/.exec(text)?.[1]
  expectEqual('the answered messages', replies.map(({ text }) => nameOf(text)), ['one', 'two', 'three', 'refused', 'shaky'])
  expectEqual('the states', replies.map(({ state }) => state), ['sent', 'sent', 'sent', 'dead', 'sent'])
  expectEqual('the dead letter', [dead, replies[3]?.error?.status], [[replies[3]?.id], 410])
  for (const { id, state, text } of replies) {
    const texts = [...new Set(accepted.filter(({ key }) => key === id).map((one) => one.text))]
    expectEqual(`what the provider has under ${id}`, texts, state === 'sent' ? [text] : [])
  }
  const ids = new Set(replies.map(({ id }) => id))
  expectEqual('what the provider has under other keys', accepted.filter(({ key }) => !ids.has(key)), [])
  for (const [threadId, { signals, runs, answers }] of Object.entries(threads)) {
    const asked = replies.filter((reply) => reply.threadId === threadId).map(({ inboundId }) => inboundId)
    expectEqual(`messages of ${threadId}`, signals, asked)
    expectEqual(`runs of ${threadId}`, [runs, answers], [asked.map((id) => `${id} finished`), asked.length])
  }
  return wrong
}

describe('processes that are killed anywhere between a message and its reply', { timeout: 3_600_000 }, () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-outbox-campaign-'))
    program = await buildProgram(folder, undefined, '../channel/outbox-process.ts')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([1, 4])(`[V3.13] [V3.16] ${kills} kills, %i processes at once: each message is one run and one reply under one key, and a dead letter is listed`, async (processes) => {
    const { accepted, answer } = provider()
    const { url } = await localProvider(answer)
    let killed = 0
    const wrong: string[] = []
    for (let round = 0; killed < kills; round += 1) {
      const name = `${processes}-${round}`
      const plan = { file: join(folder, `${name}.db`), url: `${url}/${name}` }
      for (let generation = 0; generation < generations; generation += 1) {
        const ends = await Promise.all(Array.from({ length: processes }, (_, nth) => {
          const seed = round * 101 + generation * 11 + nth * 7 + processes
          return live(program, { ...plan, shift: generation * shiftMs, killAt: 1 + below(callsOfLife, seed) })
        }))
        killed += ends.filter(({ signal }) => signal === 'SIGKILL').length
      }
      const { output } = await live(program, { ...plan, shift: generations * shiftMs, killAt: 0 })
      wrong.push(...problems(JSON.parse(output) as Report, accepted.filter(({ path }) => path === `/${name}`)).map((text) => `${name}: ${text}`))
      rmSync(plan.file, { force: true })
    }
    expect(wrong).toEqual([])
    expect(killed).toBeGreaterThanOrEqual(kills)
    if (process.env.HEED_REPLY_KILLS) process.stdout.write(`${processes} at once: ${killed} kills\n`)
  })
})
