import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import type { Chunk } from '../../src/message/chunk.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, turn, typesOf } from './asking.ts'

const asking = (...more: ScriptedStep[]) => scriptedModel([{ toolCalls: [{ toolName: 'agent-poet', input: { prompt: 'A verse on rain.' } }] }, 'Here it is.', ...more])

describe('an agent of an agent', () => {
  refuseStrayRejections()

  it('is offered as a tool that takes a prompt and answers with a text', async () => {
    const poetModel = scriptedModel(['Drip, drop.'])
    const poet = new Agent({ id: 'poet', description: 'Writes verses.', instructions: 'Rhyme.', model: poetModel })
    const model = asking()
    const { text, toolResults } = await new Agent({ id: 'editor', model, agents: { poet } }).generate('A verse, please.')
    expect(text).toBe('Here it is.')
    expect(model.calls[0]?.tools).toMatchObject([{
      name: 'agent-poet',
      description: 'Writes verses.',
      inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    }])
    expect(poetModel.calls[0]?.prompt).toEqual([{ role: 'system', content: 'Rhyme.' }, { role: 'user', content: [{ type: 'text', text: 'A verse on rain.' }] }])
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'text', value: 'Drip, drop.' } }] })
    expect(toolResults).toMatchObject([{ toolName: 'agent-poet', result: { text: 'Drip, drop.' } }])
  })

  it('has its stream nested in the one of the agent that asked', async () => {
    const look = createTool({ id: 'look', execute: async () => 'wet' })
    const poet = new Agent({ id: 'poet', model: scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Drip.']), tools: { look } })
    const chunks = await chunksOf(await new Agent({ id: 'editor', model: asking(), agents: { poet } }).stream('Go.', { runId: 'outer' }))
    const nested = of(chunks, 'tool-output').map(({ payload }) => payload.output as Chunk)
    expect(typesOf(nested).filter((type) => !type.includes('delta'))).toEqual([
      'start', 'step-start', 'response-metadata', 'tool-call-input-streaming-start', 'tool-call-input-streaming-end', 'tool-call', 'tool-result', 'step-finish',
      'step-start', 'response-metadata', 'text-start', 'text-end', 'step-finish', 'finish',
    ])
    expect(new Set(nested.map((chunk) => chunk.runId)).size).toBe(1)
    expect(nested[0]?.runId).not.toBe('outer')
    for (const { payload, runId } of of(chunks, 'tool-output')) expect([payload.toolCallId, payload.toolName, runId]).toEqual(['call_0_0', 'agent-poet', 'outer'])
    expect(typesOf(chunks).lastIndexOf('tool-output')).toBeLessThan(typesOf(chunks).indexOf('tool-result'))
  })

  it('is given the request context', async () => {
    const seen: unknown[] = []
    const poet = new Agent({ id: 'poet', model: scriptedModel(['Drip.']), instructions: ({ requestContext }) => String(seen.push(requestContext.get('user'))) })
    await new Agent({ id: 'editor', model: asking(), agents: { poet } }).generate('Go.', { requestContext: new RequestContext({ user: 'u1' }) })
    expect(seen).toEqual(['u1'])
  })

  it('[G1.5] is aborted with the run that asked it', async () => {
    const stop = new AbortController()
    const signals: Array<AbortSignal | undefined> = []
    const poet = new Agent({
      id: 'poet',
      model: scriptedModel(({ options }) => {
        signals.push(options.abortSignal)
        return { text: ['Drip, '], hang: true }
      }),
    })
    const stream = await new Agent({ id: 'editor', model: asking(), agents: { poet } }).stream('Go.', { abortSignal: stop.signal })
    for await (const chunk of stream.fullStream) {
      if (chunk.type === 'tool-output' && (chunk.payload.output as Chunk).type === 'text-delta') stop.abort()
    }
    expect(await stream.finishReason).toBe('aborted')
    await turn()
    expect(signals[0]?.aborted).toBe(true)
  })

  it('that fails is an error the model reads', async () => {
    const poet = new Agent({ id: 'poet', heed: recordedHeed().heed, model: scriptedModel([{ error: { status: 400, message: 'no muse' } }]) })
    const { text, toolResults } = await new Agent({ id: 'editor', model: asking(), agents: { poet } }).generate('Go.')
    expect(text).toBe('Here it is.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('provider_error') }])
    // What the provider wrote is for the operator.
    expect(JSON.stringify(toolResults)).not.toContain('no muse')
  })

  it('that refuses, or waits for a decision, is an error the model reads', async () => {
    const refusing = new Agent({ id: 'poet', name: 'Poet', model: scriptedModel(['x']), inputProcessors: [{ id: 'p', processInput: ({ abort }) => abort('no verses') }] })
    const first = await new Agent({ id: 'editor', model: asking(), agents: { poet: refusing } }).generate('Go.')
    expect(first.toolResults).toMatchObject([{ isError: true, result: 'Poet refused: no verses' }])
    expect(first.tripwire).toBeUndefined()
    const look = createTool({ id: 'look', requireApproval: true, execute: async () => 1 })
    const waiting = new Agent({ id: 'poet', name: 'Poet', model: scriptedModel([{ toolCalls: [{ toolName: 'look' }] }]), tools: { look } })
    const second = await new Agent({ id: 'editor', model: asking(), agents: { poet: waiting } }).generate('Go.')
    expect(second.toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('Poet waits for a decision about look') }])
  })

  it('may ask agents of its own, side by side with others', async () => {
    const leaf = (id: string) => new Agent({ id, model: scriptedModel([`${id} here.`]) })
    const middle = new Agent({
      id: 'middle',
      model: scriptedModel([{ toolCalls: [{ toolName: 'agent-x', input: { prompt: '?' } }, { toolName: 'agent-y', input: { prompt: '?' } }] }, 'Both are here.']),
      agents: { x: leaf('x'), y: leaf('y') },
    })
    const { toolResults } = await new Agent({ id: 'top', model: asking(), agents: { poet: middle } }).generate('Go.')
    expect(toolResults).toMatchObject([{ result: { text: 'Both are here.' } }])
  })

  it('[G1.3] that is asked without a prompt is not asked', async () => {
    const poet = new Agent({ id: 'poet', model: scriptedModel([]) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'agent-poet', input: { text: 'x' } }] }, 'Sorry.'])
    const { toolResults } = await new Agent({ id: 'editor', model, agents: { poet } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining("must have required property 'prompt'") }])
  })
})
