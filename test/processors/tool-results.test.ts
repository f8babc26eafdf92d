import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore, type Chunk, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf } from '../agent/asking.ts'
import { openHeed } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }
const thread = { threadId: 't', resourceId: 'u' }

type Seen = Pick<Parameters<NonNullable<Processor['processToolResult']>>[0], 'result' | 'isError' | 'preliminary'>

/** One call of a tool, and what a processor was asked of it. Answers where its words came to: to watchers, the model and history. */
async function called(tool: Parameters<typeof createTool>[0], act: NonNullable<Processor['processToolResult']>) {
  const seen: Seen[] = []
  const processor: Processor = {
    id: 'p',
    processToolResult(args) {
      seen.push({ result: args.result, isError: args.isError, preliminary: args.preliminary })
      return act(args)
    },
  }
  const model = scriptedModel([{ toolCalls: [{ toolName: 'tool', toolCallId: 'c1' }] }, 'Done.'])
  const agent = new Agent({ id: 'a', model, tools: { tool: createTool(tool) }, outputProcessors: [processor] })
  openHeed({ agent }, new InMemoryStore())
  const stream = await agent.stream('Go.', { memory })
  const chunks: Chunk[] = await chunksOf(stream)
  const result = await stream.result.catch(() => undefined)
  const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
  return { seen, chunks, result, everywhere: JSON.stringify([chunks, model.calls.map(({ prompt }) => prompt), messages, result?.toolResults]) }
}

const throws = { id: 'tool', execute: () => Promise.reject(new Error('SECRET of the database')) }
const streams = {
  id: 'tool',
  async *execute() {
    yield 'SECRET on the way'
    yield 'SECRET at the end'
  },
}

describe('processToolResult', () => {
  it('[G2.12] sees what a tool throws, and what it makes of it is all that callers and subscribers see', async () => {
    const { seen, everywhere, chunks } = await called(throws, ({ result }) => ({ result: String(result).replace('SECRET', '***') }))
    expect(seen).toEqual([{ result: 'tool failed: SECRET of the database', isError: true, preliminary: false }])
    expect(chunks.find(({ type }) => type === 'tool-error')).toMatchObject({ payload: { error: { message: 'tool failed: *** of the database' } } })
    expect(everywhere).toContain('tool failed: *** of the database')
    expect(everywhere).not.toContain('SECRET')
  })

  it('[G2.12] sees what is wrong with a result, which may quote it, and what toModelOutput throws', async () => {
    const mapped = await called({ id: 'tool', execute: () => 'fine', toModelOutput: () => { throw new Error('SECRET') } }, ({ isError }) => (isError ? { result: 'It failed.' } : undefined))
    expect(mapped.seen.map(({ isError }) => isError)).toEqual([false, true])
    expect(mapped.everywhere).not.toContain('SECRET')
    const schema = { type: 'string', enum: ['x'] } as const
    const wrong = await called({ id: 'tool', outputSchema: schema, execute: () => 'SECRET' as 'x' }, () => ({ result: 'It failed.' }))
    expect(wrong.seen).toMatchObject([{ isError: true }])
    expect(wrong.everywhere).not.toContain('SECRET')
  })

  it('[G2.12] sees what a tool returns on the way, before watchers do', async () => {
    const { seen, chunks, everywhere } = await called(streams, ({ result }) => ({ result: String(result).replace('SECRET', '***') }))
    expect(seen).toEqual([
      { result: 'SECRET on the way', isError: false, preliminary: true }, { result: 'SECRET at the end', isError: false, preliminary: false },
    ])
    expect(chunks.filter(({ type }) => type === 'tool-result').map((chunk) => ('payload' in chunk ? (chunk.payload as { result: unknown }).result : undefined)))
      .toEqual(['*** on the way', '*** at the end'])
    expect(everywhere).not.toContain('SECRET')
  })

  it('[G2.12] that refuses what is on the way with retry has it not shown, and counts no retry', async () => {
    const { chunks, result, everywhere } = await called(streams, ({ preliminary, abort }) => (preliminary ? abort('not yet', { retry: true }) : { result: 'clean' }))
    expect(chunks.filter(({ type }) => type === 'tool-result')).toMatchObject([{ payload: { result: 'clean' } }])
    expect([chunks.some(({ type }) => type === 'tripwire'), result?.text]).toEqual([false, 'Done.'])
    expect(everywhere).not.toContain('SECRET')
  })

  it.each([['throws', throws], ['returns on the way', streams]] as const)('[G2.12] that refuses what a tool %s ends the run, and leaves nothing', async (_, tool) => {
    const { chunks, result, everywhere } = await called(tool, ({ abort }) => abort('no'))
    expect(chunks.map(({ type }) => type).slice(-2)).toEqual(['tripwire', 'finish'])
    expect(result?.finishReason).toBe('tripwire')
    expect(everywhere).not.toContain('SECRET')
  })

  it('[G2.12] that refuses an error with retry gives the model the reason', async () => {
    const { everywhere } = await called(throws, ({ abort }) => abort('it may not be told', { retry: true }))
    expect(everywhere).toContain('The result of tool was not accepted: it may not be told')
    expect(everywhere).not.toContain('SECRET')
  })
})
