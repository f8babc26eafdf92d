import { describe, expect, it } from 'vitest'
import type { Chunk } from '../message/chunk.ts'
import { chunkShapes, emittedChunk, returnedChunk } from './chunk-results.ts'

const runId = 'run-1'
const delta: Chunk = { type: 'text-delta', runId, from: 'AGENT', payload: { id: '1', text: 'Hi' } }
const finish: Chunk = { type: 'finish', runId, from: 'AGENT', payload: { messageId: 'm', stepResult: { reason: 'stop' }, output: { usage: { inputTokens: 1 } as never }, metadata: {} } }
const waits: Chunk = { type: 'tool-call-suspended', runId, from: 'AGENT', payload: { toolCallId: 'c', toolName: 'ask', args: { secret: 1 }, suspendPayload: { code: 7 }, resumeSchema: '{}' } }
const echo: Chunk = { type: 'data-signal', runId, data: { id: 's', type: 'reactive', contents: 'Hi' }, transient: true }
const chunk = (type: string, payload: unknown, over: object = {}) => ({ type, runId, from: 'AGENT', payload, ...over })
const call = { toolCallId: 'c', toolName: 'look' }

const types = Object.keys(chunkShapes) as Array<keyof typeof chunkShapes>
const ofRun = types.filter((type) => 'changeable' in chunkShapes[type])
/** Types whose payload fields are all optional. */
const bare = ['response-metadata', 'raw']

describe('[G2.34] a chunk of a processor', () => {
  it.each(types.filter((type) => !ofRun.includes(type) && !bare.includes(type)))('%s needs the fields of its payload', (type) => {
    for (const payload of [undefined, null, 7, [], {}]) expect(() => returnedChunk(chunk(type, payload), delta)).toThrow(new RegExp(`^it returned a chunk of type '${type}' (?:without|whose payload is) `))
  })

  it.each(ofRun)('%s is rejected: only the run creates it', (type) => {
    expect(() => returnedChunk(chunk(type, {}), delta)).toThrow(`it returned a chunk of type '${type}', which only the run creates`)
    expect(() => emittedChunk(chunk(type, {}), delta)).toThrow(`'${type}', which only the run creates`)
  })

  it.each<[string, unknown, string]>([
    ['an id that is a number', chunk('text-delta', { id: 7, text: 'x' }), 'whose id is not a text'],
    ['a text that is a number', chunk('reasoning-delta', { id: '1', text: 5 }), 'whose text is not a text'],
    ['metadata that is not an object for a provider', chunk('text-start', { id: '1', providerMetadata: { openai: 'x' } }), 'whose providerMetadata is not an object with an object for each provider'],
    ['an unknown type of source', chunk('source', { id: 's', sourceType: 'book' }), "whose sourceType is not 'url' or 'document'"],
    ['a page without its address', chunk('source', { id: 's', sourceType: 'url' }), 'without url in its payload'],
    ['a call without input', chunk('tool-call', call), 'without args in its payload'],
    ['a flag that is a text', chunk('tool-result', { ...call, args: {}, result: 1, preliminary: 'yes' }), 'whose preliminary is not true or false'],
    ['an error that is a text', chunk('tool-error', { ...call, args: {}, error: 'no' }), 'whose error is not an error with name and message'],
    ['another run', chunk('text-delta', delta.payload, { runId: 'zzz' }), 'with the runId of another run'],
    ['no run', chunk('text-delta', delta.payload, { runId: undefined }), 'without the runId of its run'],
    ['no from', chunk('text-delta', delta.payload, { from: undefined }), 'that is not from AGENT, USER or SYSTEM'],
    ['metadata that is a list', chunk('text-delta', delta.payload, { metadata: [] }), 'whose metadata is not an object'],
    ['an unknown type', chunk('words', {}), 'which is unknown. Use a type that begins with data- for a chunk of your own'],
    ['the name of a property of every object as its type', chunk('constructor', {}), 'which is unknown'],
    ['data with an id that is a number', { type: 'data-x', runId, data: 1, id: 7 }, 'whose id is not a text'],
    ['a signal that was not sent', { ...echo }, 'which only the thread creates'],
    ['a snapshot', { type: 'data-thread-snapshot', runId, data: {} }, 'which only the thread creates'],
    ['a list', [delta], 'it returned a list'],
  ])('is rejected with %s', (_, invalid, reason) => {
    expect(() => returnedChunk(invalid, delta)).toThrow(reason)
    expect(() => emittedChunk(invalid, delta)).toThrow(reason.replace('returned', 'emitted'))
  })

  it('is published unchanged otherwise', () => {
    const made = [
      chunk('text-delta', { id: '2', text: '' }), chunk('file', { data: 'AAAA', mimeType: 'image/png' }), chunk('source', { id: 's', sourceType: 'document', title: undefined }), chunk('raw', 7),
      chunk('tool-call', { ...call, args: null, note: 1 }), chunk('tool-output', { ...call, output: undefined }), chunk('response-metadata', {}), { type: 'data-x', runId, data: { any: ['thing'] }, note: 1 },
    ]
    for (const one of made) expect(returnedChunk(one, delta)).toEqual(one)
    expect(returnedChunk(undefined, delta)).toBe(delta)
    expect(returnedChunk(delta, delta)).toBe(delta)
    expect(returnedChunk(null, delta)).toBeUndefined()
  })

  it('loses an earlier cursor', () => {
    const shown = { ...delta, cursor: '1.4' }
    expect(returnedChunk(shown, delta)).toEqual(delta)
    const emitted = emittedChunk(delta, delta)
    expect([emitted, emitted === delta]).toEqual([delta, false])
  })
})

describe('[G2.34] a chunk that only the run creates', () => {
  it('stays when a processor drops it, and may be returned as a copy', () => {
    expect(returnedChunk(null, finish)).toBe(finish)
    expect(returnedChunk(structuredClone(finish), finish)).toEqual(finish)
    expect(() => emittedChunk(finish, finish)).toThrow('which only the run creates')
    expect(() => emittedChunk(echo, echo)).toThrow('which only the run creates')
  })

  it('may be changed only in fields that the run does not read', () => {
    const noted = { ...finish, payload: { ...finish.payload, metadata: { seen: true } } }
    expect(returnedChunk(noted, finish)).toEqual(noted)
    expect(() => returnedChunk({ ...finish, payload: { ...finish.payload, metadata: 7 } }, finish)).toThrow('whose metadata is not an object')
    expect(() => returnedChunk({ ...finish, payload: { ...finish.payload, messageId: 'other' } }, finish)).toThrow('Only metadata can be changed')
    const hidden = { ...waits, payload: { ...waits.payload, args: {}, suspendPayload: null } }
    expect(returnedChunk(hidden, waits)).toEqual(hidden)
    expect(() => returnedChunk({ ...waits, payload: { ...waits.payload, toolCallId: 'd' } }, waits)).toThrow('Only args and suspendPayload can be changed')
    expect(() => returnedChunk({ ...finish, payload: {} }, finish)).toThrow('that differs from the one that it received')
  })

  it('the echo of a signal may be changed or dropped, and stays the echo of that signal', () => {
    const reworded = { ...echo, data: { ...(echo.data as object), contents: '***' } }
    expect([returnedChunk(reworded, echo), returnedChunk(null, echo)]).toEqual([reworded, undefined])
    expect(() => returnedChunk({ ...echo, data: { id: 'other', type: 'reactive', contents: 'x' } }, echo)).toThrow('of another signal')
    expect(() => returnedChunk({ ...echo, data: { id: 's', type: 'reactive' } }, echo)).toThrow('without contents')
  })
})
