import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import type { OtherInput } from '../tools/tool-input.ts'
import { StepRecorder } from './step-recorder.ts'

function recorded(parts: LanguageModelV4StreamPart[], otherInput?: (name: string) => OtherInput): StepRecorder {
  const recorder = new StepRecorder('run-1', otherInput)
  for (const part of parts) {
    const chunk = recorder.take(part)
    if (chunk) recorder.keep(chunk, chunk)
  }
  return recorder
}

describe('the record of a step', () => {
  it('joins deltas by their id, and keeps the order in which parts began', () => {
    const { parts, text } = recorded([
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'A' },
      { type: 'text-start', id: 'b' },
      { type: 'text-delta', id: 'b', delta: 'B' },
      { type: 'text-delta', id: 'a', delta: 'a' },
      { type: 'text-end', id: 'a' },
      { type: 'text-end', id: 'b' },
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'again' },
    ])
    expect(parts).toEqual([{ type: 'text', text: 'Aa' }, { type: 'text', text: 'B' }, { type: 'text', text: 'again' }])
    expect(text).toBe('ABaagain')
  })

  it('keeps metadata of the last part of a block, such as a signature', () => {
    const { parts } = recorded([
      { type: 'reasoning-start', id: 'r', providerMetadata: { p: { item: 1 } } },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
      { type: 'reasoning-delta', id: 'r', delta: '', providerMetadata: { p: { signature: 's' } } },
      { type: 'reasoning-end', id: 'r' },
    ])
    expect(parts).toEqual([{ type: 'reasoning', reasoning: 'Hm.', providerMetadata: { p: { signature: 's' } } }])
  })

  it('[G2.35] keeps no signature over reasoning that a processor changed, also when the stream was cut', () => {
    const recorder = new StepRecorder('run-1')
    const streamed: LanguageModelV4StreamPart[] = [
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: 'hunter2' },
      { type: 'reasoning-end', id: '1', providerMetadata: { anthropic: { signature: 'sig' } } },
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'Half' },
    ]
    for (const part of streamed) {
      const chunk = recorder.take(part)
      if (chunk) recorder.keep(chunk, [chunk.type === 'reasoning-delta' ? { ...chunk, payload: { ...chunk.payload, text: '***' } } : chunk])
    }
    recorder.dropItems()
    expect(recorder.parts).toEqual([{ type: 'reasoning', reasoning: '***' }, { type: 'text', text: 'Half' }])
  })

  it('keeps files as base64 or as a URL, and marks those of the reasoning', () => {
    const { parts } = recorded([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://x.example/a.png') } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' } },
    ])
    expect(parts).toEqual([
      { type: 'file', data: 'AQID', mimeType: 'image/png' },
      { type: 'file', data: 'https://x.example/a.png', mimeType: 'image/png' },
      { type: 'file', data: 'AA==', mimeType: 'image/png', reasoning: true },
    ])
  })

  it('keeps custom parts of the provider, and publishes nothing of them', () => {
    const recorder = new StepRecorder('run-1')
    expect(recorder.take({ type: 'custom', kind: 'p.compaction', providerMetadata: { p: { id: 1 } } })).toBeUndefined()
    expect(recorder.take({ type: 'ping' })).toBeUndefined()
    expect(recorder.parts).toEqual([{ type: 'custom', kind: 'p.compaction', providerMetadata: { p: { id: 1 } } }])
  })

  it('keeps results of the provider\'s tools with their calls; preliminary ones are only published', () => {
    const call = { toolCallId: 'c', toolName: 'search' }
    const recorder = new StepRecorder('run-1')
    recorder.take({ type: 'tool-call', ...call, input: '{}', providerExecuted: true, providerMetadata: { p: { of: 'call' } } })
    expect(recorder.take({ type: 'tool-result', ...call, result: 'some', preliminary: true })).toMatchObject({
      type: 'tool-result',
      payload: { result: 'some', preliminary: true, providerExecuted: true },
    })
    expect(recorder.parts).toMatchObject([{ toolInvocation: { state: 'call' } }])
    recorder.take({ type: 'tool-result', ...call, result: { why: 'busy' }, isError: true, providerMetadata: { p: { of: 'result' } } })
    expect(recorder.parts).toEqual([{
      type: 'tool-invocation',
      toolInvocation: { ...call, args: {}, state: 'output-error', errorText: '{"why":"busy"}', errorCode: 'provider_error' },
      providerExecuted: true,
      providerMetadata: { p: { of: 'call' } },
      resultProviderMetadata: { p: { of: 'result' } },
    }])
    expect(recorder.calls).toEqual([])
  })

  it('accepts a string as input only for a tool that allows one', () => {
    const part = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'shell', input: '"ls"' }
    expect(recorded([part]).calls).toMatchObject([
      { invalid: 'The input is not a JSON object', part: { toolInvocation: { args: { malformed: '"ls"' } } } },
    ])
    const [call] = recorded([part], (name) => (name === 'shell' ? 'any JSON' : undefined)).calls
    expect(call).toEqual({
      part: { type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'shell', args: 'ls', state: 'call' } },
    })
  })

  it('reads a text as the only argument of a tool, and as the object that it encodes first', () => {
    const inputs = ['"ls"', '"{\\"command\\":\\"pwd\\"}"', '["ls"]', 'ls']
    const parts = inputs.map((input, at) => ({ type: 'tool-call' as const, toolCallId: `c${at}`, toolName: 'shell', input }))
    expect(recorded(parts, () => ({ textOf: 'command' })).calls.map(({ part, invalid }) => [part.toolInvocation.args, invalid?.slice(0, 21)])).toEqual([
      [{ command: 'ls' }, undefined], [{ command: 'pwd' }, undefined], [{ malformed: '["ls"]' }, 'The input is not a JS'], [{ malformed: 'ls' }, 'The input is not vali'],
    ])
  })

  it('closes open blocks once when the stream is cut, and drops calls that will have no result', () => {
    const recorder = recorded([
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Hi' },
      { type: 'reasoning-start', id: 'r' },
      { type: 'tool-input-start', id: 'c1', toolName: 'look' },
      { type: 'tool-call', toolCallId: 'c0', toolName: 'look', input: '{}' },
      { type: 'tool-call', toolCallId: 'p0', toolName: 'search', input: '{}', providerExecuted: true },
    ])
    expect(recorder.closeOpen()).toMatchObject([
      { type: 'text-end', payload: { id: 't' } },
      { type: 'reasoning-end', payload: { id: 'r' } },
      { type: 'tool-call-input-streaming-end', payload: { toolCallId: 'c1' } },
    ])
    expect(recorder.closeOpen()).toEqual([])
    recorder.dropOpenCalls()
    expect(recorder.calls).toEqual([])
    expect(recorder.parts.map((part) => part.type)).toEqual(['text', 'reasoning'])
  })

  it('rejects approval requests of the provider, with what to do', () => {
    expect(() => new StepRecorder('r').take({ type: 'tool-approval-request', approvalId: 'x', toolCallId: 'c' })).toThrow(/Turn that off/)
  })
})
