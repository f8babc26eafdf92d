import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type Chunk, type Processor } from '../../src/index.ts'
import { scriptedModel, type ScriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, typesOf } from '../agent/asking.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }

function open(model: ScriptedModel, ...outputProcessors: Processor[]) {
  const look = createTool({ id: 'look', execute: (_, { write }) => (write({ type: 'data-note', data: { a: 1 } }), { seen: true }) })
  const fail = createTool({ id: 'fail', execute: () => { throw new Error('no') } })
  const ask = createTool({ id: 'ask', requireApproval: true, execute: () => 'asked' })
  const agent = new Agent({ id: 'a', model, tools: { look, fail, ask }, outputProcessors })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
  return { agent, heed }
}

describe('chunks that processors make', () => {
  const forged: Array<[string, (part: Chunk) => unknown]> = [
    ['the end of the step', ({ runId }) => ({ type: 'step-finish', runId, from: 'AGENT', payload: {} })],
    ['the end of the run', ({ runId }) => ({ type: 'finish', runId, from: 'AGENT', payload: {} })],
    ['the beginning of a run', ({ runId }) => ({ type: 'start', runId, from: 'AGENT', payload: {} })],
    ['an empty file', ({ runId }) => ({ type: 'file', runId, from: 'AGENT', payload: {} })],
    ['an empty source', ({ runId }) => ({ type: 'source', runId, from: 'AGENT', payload: {} })],
    ['an empty call', ({ runId }) => ({ type: 'tool-call', runId, from: 'AGENT', payload: {} })],
    ['a list as payload', ({ runId }) => ({ type: 'tool-result', runId, from: 'AGENT', payload: [] })],
    ['an id that is a number', (part) => ({ ...part, payload: { id: 7, text: 'q' } })],
    ['words of another run', (part) => ({ ...part, runId: 'zzz' })],
    ['a snapshot of the thread', ({ runId }) => ({ type: 'data-thread-snapshot', runId, data: {} })],
  ]

  it.each(forged)('[G2.8] [G2.34] that are %s end the run with a named error: no subscriber receives them, and the thread continues', async (_, forge) => {
    let done = false
    const forger: Processor = {
      id: 'p',
      processOutputStream({ part }) {
        if (done || part.type !== 'text-delta' || part.payload.text !== 'there ') return undefined
        done = true
        return forge(part) as Chunk
      },
    }
    const { agent, heed } = open(scriptedModel(() => ({ text: ['Hi ', 'there ', 'you.'] })), forger)
    const stream = await agent.stream('Go.', { memory })
    expect(typesOf(await chunksOf(stream))).toEqual(['start', 'step-start', 'response-metadata', 'text-start', 'text-delta', 'error'])
    await expect(stream.result).rejects.toMatchObject({ code: 'processor_failed', message: expect.stringContaining("Processor 'p' failed in processOutputStream: it returned a chunk of type") as string })
    expect(await agent.activeRun(thread)).toBeNull()
    expect((await agent.generate('Again.', { memory })).text).toBe('Hi there you.')
    await heed.close()
  })

  const script = () => scriptedModel([
    { reasoning: 'Hm.', text: ['Let me ', 'look.'], sources: [{ url: 'https://x.example/' }, { mediaType: 'text/plain', title: 'Notes' }], files: [{ mediaType: 'image/png', data: 'AAAA' }],
      toolCalls: [{ toolName: 'look' }, { toolName: 'fail' }] },
    { toolCalls: [{ toolName: 'ask' }] },
    'Done.',
  ])

  it('[G2.34] may be copies of everything that a run says: nothing is refused, and each has its own place', async () => {
    const copier: Processor = { id: 'p', processOutputStream: async ({ part }) => structuredClone(part) }
    const saying = async (...processors: Processor[]) => {
      const { agent, heed } = open(script(), ...processors)
      const watching = await agent.subscribeToThread(thread)
      const read = (async () => {
        const seen: Chunk[] = []
        for await (const chunk of watching.stream) if (seen.push(chunk) && chunk.type === 'finish') break
        return seen
      })()
      const { runId } = await agent.generate('Go.', { memory, includeRawChunks: true })
      await agent.approveToolCall({ runId, toolCallId: 'call_1_0' })
      const seen = await read
      const { messages } = await (await agent.getMemory()).recall(thread)
      await heed.close()
      return { types: typesOf(seen), cursors: seen.map(({ cursor }) => cursor), parts: messages.flatMap(({ content }) => content.parts) }
    }
    const plain = await saying()
    expect(plain.types).toEqual(expect.arrayContaining(['reasoning-delta', 'source', 'file', 'tool-call', 'data-note', 'tool-result', 'tool-error', 'tool-call-approval', 'step-finish', 'finish']))
    expect(await saying(copier)).toEqual(plain)
  })

  it('[G2.34] neither hide how the run goes, nor take the place of one another', async () => {
    const twice: Processor = { id: 'p', processOutputStream: ({ part, emit }) => (part.type === 'text-delta' ? (emit(part), part) : null) }
    const { agent, heed } = open(scriptedModel([{ text: ['Hi ', 'you.'] }]), twice)
    const watching = await agent.subscribeToThread(thread)
    const chunks = await chunksOf(await agent.stream('Go.', { memory }))
    expect(typesOf(chunks)).toEqual(['start', 'step-start', 'text-delta', 'text-delta', 'text-delta', 'text-delta', 'step-finish', 'finish'])
    const cursors: Array<string | undefined> = []
    for await (const { cursor, type } of watching.stream) if (cursors.push(cursor) && type === 'finish') break
    expect(new Set(cursors).size).toBe(cursors.length)
    await heed.close()
  })

  it('[G2.35] of files and sources are what is kept, in their place; of calls and results only displays see another', async () => {
    const rewriting: Processor = {
      id: 'p',
      processOutputStream({ part, emit }) {
        if (part.type === 'source') return part.payload.sourceType === 'url' ? { ...part, payload: { ...part.payload, url: 'https://y.example/' } } : null
        if (part.type === 'file') emit({ ...part, payload: { data: 'CCCC', mimeType: 'image/gif' } })
        if (part.type === 'file') return { ...part, payload: { ...part.payload, data: 'BBBB' } }
        if (part.type === 'tool-call') return { ...part, payload: { ...part.payload, args: 'hidden' } }
        return part.type === 'tool-result' ? { ...part, payload: { ...part.payload, result: 'hidden' } } : undefined
      },
    }
    const model = scriptedModel([
      { text: 'See.', sources: [{ url: 'https://x.example/' }, { mediaType: 'text/plain', title: 'Notes' }], files: [{ mediaType: 'image/png', data: 'AAAA' }], toolCalls: [{ toolName: 'look', input: { at: 1 } }] }, 'Done.',
    ])
    const { agent, heed } = open(model, rewriting)
    const stream = await agent.stream('Go.', { memory })
    const chunks = await chunksOf(stream)
    expect([of(chunks, 'file').map(({ payload }) => payload.data), of(chunks, 'source').map(({ payload }) => payload.url)]).toEqual([['CCCC', 'BBBB'], ['https://y.example/']])
    expect([of(chunks, 'tool-call')[0]?.payload.args, of(chunks, 'tool-result')[0]?.payload.result]).toEqual(['hidden', 'hidden'])
    const { messages } = await (await agent.getMemory()).recall(thread)
    const parts = messages.flatMap(({ content }) => content.parts)
    expect(parts.flatMap((part) => (part.type === 'file' ? [part.data] : part.type === 'source' && part.source.sourceType === 'url' ? [part.source.url] : []))).toEqual(['https://y.example/', 'CCCC', 'BBBB'])
    expect(parts.filter(({ type }) => type === 'source')).toHaveLength(1)
    expect(parts.find((part) => part.type === 'tool-invocation')).toMatchObject({ toolInvocation: { args: { at: 1 }, result: { seen: true } } })
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toMatch(/AAAA|x\.example|hidden/)
    await heed.close()
  })
})
