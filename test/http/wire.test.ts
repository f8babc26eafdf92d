import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** Reads raw frames until one matches. */
async function frames(response: Response, until: (frame: string) => boolean): Promise<string[]> {
  const reader = (response.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream()).getReader()
  const seen: string[] = []
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return seen
    rest += value
    const parts = rest.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      seen.push(part)
      if (until(part)) {
        await reader.cancel()
        return seen
      }
    }
  }
}

const isFinish = (frame: string) => frame.includes('"type":"finish"')
const chunkOf = (frame: string) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Chunk
const guide = (...answers: string[]) => new Agent({ id: 'guide', model: scriptedModel(answers) })

describe('the wire', () => {
  it('[H2.1] gives existing clients one line in a frame, and nothing else in it', async () => {
    const { ask } = await served({ guide: guide('Hello.') })
    const response = await ask('/agents/guide/threads/subscribe', { json: thread })
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    await ask('/agents/guide/send-message', { json: { message: 'Hi', ...thread } })
    const [first, ...rest] = await frames(response, isFinish)
    expect(first).toBe(': connected')
    expect(rest.every((frame) => /^data: \{.*\}$/.test(frame))).toBe(true)
    expect(rest.map(chunkOf).map(({ type }) => type)).toContain('data-user-message')
  })

  it('[G1.31] writes the bigint of a validated answer as a text, on streams and in answers', async () => {
    const schema = z.object({ amount: z.string().transform(BigInt) })
    const teller = new Agent({ id: 'teller', model: scriptedModel(['{"amount":"12"}'], { loop: true }), defaultOptions: { structuredOutput: { schema } } })
    const { ask } = await served({ teller })
    const watching = await ask('/agents/teller/threads/subscribe', { json: thread })
    await ask('/agents/teller/send-message', { json: { message: 'How much?', ...thread } })
    const seen = (await frames(watching, isFinish)).slice(1).map(chunkOf)
    expect(seen).toContainEqual(expect.objectContaining({ type: 'object-result', payload: { object: { amount: '12' } } }))
    const answer = await ask('/agents/teller/generate', { json: { messages: 'How much?' } })
    expect([answer.status, ((await answer.json()) as { object: unknown }).object]).toEqual([200, { amount: '12' }])
  })

  it('[H2.1] ends a stream of one run with [DONE]', async () => {
    const { ask } = await served({ guide: guide('Hello.') })
    const seen = await frames(await ask('/agents/guide/stream', { json: { messages: 'Hi' } }), () => false)
    expect(seen.at(-1)).toBe('data: [DONE]')
  })

  it('[H2.2] goes on from Last-Event-ID, without a gap and without a repeat', async () => {
    const { ask } = await served({ guide: guide('First.', 'Second.') })
    const path = `/agents/guide/threads/${thread.threadId}/subscribe?resourceId=${thread.resourceId}`
    const watching = await ask(path)
    await ask('/agents/guide/send-message', { json: { message: 'One', ...thread } })
    const seen = await frames(watching, (frame) => frame.includes('"type":"text-end"'))
    const last = seen.at(-1) ?? ''
    const id = /^id: (.+)$/m.exec(last)?.[1] ?? ''
    expect(id).toBe(chunkOf(last).cursor)
    await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Two', ...thread } })
    const whole = await ask(path, { headers: { 'last-event-id': id } })
    const finishes = { count: 0 }
    const rest = (await frames(whole, (frame) => isFinish(frame) && ++finishes.count === 2)).filter((frame) => frame.includes('data: ')).map(chunkOf)
    expect(rest[0]?.type).toBe('step-finish')
    expect(rest.filter(({ type }) => type === 'start')).toHaveLength(1)
  })

  it('[H1.2] takes the same key as the same signal, also when it is sent at once', async () => {
    const model = scriptedModel(['Once.'])
    const { ask } = await served({ guide: new Agent({ id: 'guide', model }) })
    const send = () => ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Hi', ...thread }, headers: { 'idempotency-key': 'key-1' } })
    const answers = await Promise.all([send(), send(), send(), send()].map(async (sent) => (await sent).json() as Promise<{ outcome: { duplicate?: boolean }; signal: { id: string } }>))
    expect(answers.filter(({ outcome }) => outcome.duplicate !== true)).toHaveLength(1)
    expect(new Set(answers.map(({ signal }) => signal.id))).toEqual(new Set(['key-1']))
    expect(model.callCount).toBe(1)
  })

  it('[H1.1] answers a send when it is stored, and a refused one with its error', async () => {
    const { ask, heed } = await served({ guide: guide('Hello.') })
    const good = await ask('/agents/guide/send-message', { json: { message: { contents: 'Hi', id: 'sig-1' }, ...thread } })
    expect(good.status).toBe(200)
    expect(await heed.getAgentById('guide').explain({ ...thread, signalId: 'sig-1' })).not.toBeNull()
    const bad = await ask('/agents/guide/signals', { json: { signal: { type: 'nonsense', contents: 'x' }, ...thread } })
    expect([bad.status, ((await bad.json()) as { code: string }).code]).toEqual([400, 'invalid_signal'])
    const foreign = await ask('/agents/guide/send-message', { json: { message: 'Hi', threadId: thread.threadId, resourceId: 'user-2' } })
    expect([foreign.status, ((await foreign.json()) as { code: string }).code]).toEqual([403, 'thread_forbidden'])
  })

  it('has the fields that existing clients read', async () => {
    const { ask } = await served({ guide: guide('Hello.') })
    const status = async (path: string, init?: Parameters<typeof ask>[1]) => (await ask(path, init)).status
    expect(await status('/agents/nobody/send-message', { json: { message: 'Hi', ...thread } })).toBe(404)
    expect(await status('/agents/guide/send-message')).toBe(405)
    expect(await status('/nowhere')).toBe(404)
    expect(await status('/agents/guide/send-message', { method: 'POST', body: 'plain', headers: { 'content-type': 'text/plain' } })).toBe(415)
    expect(await (await ask('/agents/guide/threads/abort', { json: thread })).json()).toEqual({ aborted: false })
    expect(await (await ask('/agents')).json()).toMatchObject({ guide: { id: 'guide', name: 'guide' } })
  })
})
