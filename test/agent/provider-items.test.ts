import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { Heed } from '../../src/heed/heed.ts'
import type { MessagePart } from '../../src/message/message.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { InMemoryStore } from '../../src/store/sqlite/in-memory.ts'
import { providerServer, virtualClock, type ProviderServer, type ScriptedStep } from '../../src/testing/index.ts'
import { refuseStrayRejections, turn } from './asking.ts'

const memory = { thread: 't', resource: 'u' }

/** The provider's request for the question after a first turn, as it was sent. */
async function secondTurn(script: ScriptedStep[], processor: Processor | undefined, first: (agent: Agent) => Promise<unknown>): Promise<string> {
  await using server = await providerServer({ script: [...script, 'ok'] })
  const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
  const agent = new Agent({ id: 'a', model: createOpenAI(server.openai).responses('gpt-5'), tools, ...(processor ? { outputProcessors: [processor] } : {}) })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  await first(agent)
  await agent.generate('And now?', { memory })
  await heed.close()
  return inputOf(server)
}

function inputOf(server: ProviderServer): string {
  return JSON.stringify((server.requests.at(-1)?.body as { input: unknown } | undefined)?.input)
}

const ask = (agent: Agent) => agent.generate('Go.', { memory })

/** Answers with every part of the answer changed by `change`. */
const revising = (change: (part: MessagePart) => MessagePart[]): Pick<Processor, 'processOutputStep'> => ({
  processOutputStep: ({ messages }) => messages.map((message) => ({ ...message, content: { ...message.content, parts: message.content.parts.flatMap(change) } })),
})

describe('what a provider remembers by an id', () => {
  refuseStrayRejections()
  const secret: ScriptedStep = { reasoning: 'hm', text: 'secret hunter2' }

  it('is sent by that id as long as its text is unchanged', async () => {
    const sent = await secondTurn([secret], undefined, ask)
    expect(sent.match(/item_reference/g)).toHaveLength(2)
    expect(sent).not.toContain('hunter2')
    const copied = await secondTurn([secret], { id: 'copy', ...revising((part) => [{ ...part }]) }, ask)
    expect(copied.match(/item_reference/g)).toHaveLength(2)
  })

  it('is sent in words after an abort', async () => {
    const stopped = await secondTurn([{ reasoning: 'hm', text: ['Half ', 'of it'], hang: { parts: 5 } }], undefined, async (agent) => {
      const stop = new AbortController()
      const stream = await agent.stream('Go.', { memory, abortSignal: stop.signal })
      for await (const _ of stream.textStream) stop.abort()
      expect(await stream.finishReason).toBe('aborted')
    })
    expect(stopped).toContain('Half ')
    expect(stopped).not.toContain('item_reference')
  })

  it('is sent in words after its stream broke', async () => {
    const clock = virtualClock()
    await using server = await providerServer({ script: [{ reasoning: 'hm', text: ['One ', 'two ', 'three'], errorAfter: { parts: 7, error: { status: 529 } } }, 'three.'] })
    const agent = new Agent({ id: 'a', heed: new Heed({ clock }), model: createOpenAI(server.openai).responses('gpt-5') })
    const answer = agent.generate('Count.')
    while (clock.pending === 0) await turn()
    await clock.runAll()
    expect((await answer).text).toMatch(/^One .*three\.$/)
    expect(inputOf(server)).toContain('One ')
    expect(inputOf(server)).not.toContain('item_reference')
  })

  it('is sent as processors left it', async () => {
    const inStream: Processor = {
      id: 'stream',
      processOutputStream: ({ part }) => part.type === 'text-delta' ? { ...part, payload: { ...part.payload, text: part.payload.text.replace('hunter2', '***') } } : part,
    }
    const inStep: Processor = { id: 'step', ...revising((part) => [part.type === 'text' ? { ...part, text: part.text.replace('hunter2', '***') } : part]) }
    for (const processor of [inStream, inStep]) {
      const sent = await secondTurn([secret], processor, ask)
      expect(sent).toContain('secret ***')
      expect(sent).not.toContain('item_reference')
    }
  })

  it('removes the reasoning of a call that was removed', async () => {
    const dropping: Processor = { id: 'drop', ...revising((part) => part.type === 'tool-invocation' ? [] : [part]) }
    const sent = await secondTurn([{ reasoning: 'hm', toolCalls: [{ toolName: 'look' }] }], dropping, ask)
    expect(sent).not.toContain('item_reference')
    expect(sent).not.toContain('function_call')
  })
})
