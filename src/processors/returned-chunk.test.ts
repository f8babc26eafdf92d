import { describe, expect, it } from 'vitest'
import type { Chunk } from '../run/chunk.ts'
import { chunkShapes } from './chunk-shapes.ts'
import { emittedChunk, returnedChunk } from './returned-chunk.ts'

const runId = 'run-1'
const delta: Chunk = { type: 'text-delta', runId, from: 'AGENT', payload: { id: '1', text: 'Hi' } }
const finish: Chunk = { type: 'finish', runId, from: 'AGENT', payload: { messageId: 'm', stepResult: { reason: 'stop' }, output: { usage: { inputTokens: 1 } as never }, metadata: {} } }
const waits: Chunk = { type: 'tool-call-suspended', runId, from: 'AGENT', payload: { toolCallId: 'c', toolName: 'ask', args: { secret: 1 }, suspendPayload: { code: 7 }, resumeSchema: '{}' } }
const echo: Chunk = { type: 'data-signal', runId, data: { id: 's', type: 'reactive', contents: 'Hi' }, transient: true }
const chunk = (type: string, payload: unknown, over: object = {}) => ({ type, runId, from: 'AGENT', payload, ...over })
const call = { toolCallId: 'c', toolName: 'look' }

const types = Object.keys(chunkShapes) as Array<keyof typeof chunkShapes>
const own = types.filter((type) => 'may' in chunkShapes[type])
/** All that these have may be missing. */
const bare = ['response-metadata', 'raw']

describe('[G2.34] a chunk that a processor made', () => {
  it.each(types.filter((type) => !own.includes(type) && !bare.includes(type)))('%s needs what its payload has', (type) => {
    for (const payload of [undefined, null, 7, [], {}]) expect(() => returnedChunk(chunk(type, payload), delta)).toThrow(new RegExp(`^it returned a chunk of type '${type}' (?:without|whose payload is) `))
  })

  it.each(own)('%s is never one: it is the run that says how it goes', (type) => {
    expect(() => returnedChunk(chunk(type, {}), delta)).toThrow(`it returned a chunk of type '${type}', which is the run's to say`)
    expect(() => emittedChunk(chunk(type, {}), delta)).toThrow(`'${type}', which is the run's to say`)
  })

  it.each<[string, unknown, string]>([
    ['an id that is a number', chunk('text-delta', { id: 7, text: 'x' }), 'whose id is not a text'],
    ['a text that is none', chunk('reasoning-delta', { id: '1', text: 5 }), 'whose text is not a text'],
    ['metadata of no provider', chunk('text-start', { id: '1', providerMetadata: { openai: 'x' } }), 'whose providerMetadata is not an object with an object for each provider'],
    ['a source of no kind', chunk('source', { id: 's', sourceType: 'book' }), "whose sourceType is not 'url' or 'document'"],
    ['a page without its address', chunk('source', { id: 's', sourceType: 'url' }), 'without url in its payload'],
    ['a call without input', chunk('tool-call', call), 'without args in its payload'],
    ['a flag that is a text', chunk('tool-result', { ...call, args: {}, result: 1, preliminary: 'yes' }), 'whose preliminary is not true or false'],
    ['an error that is a text', chunk('tool-error', { ...call, args: {}, error: 'no' }), 'whose error is not an error with name and message'],
    ['another run', chunk('text-delta', delta.payload, { runId: 'zzz' }), 'with the runId of another run'],
    ['no run', chunk('text-delta', delta.payload, { runId: undefined }), 'without the runId of its run'],
    ['nobody whom it is from', chunk('text-delta', delta.payload, { from: undefined }), 'that is not from AGENT, USER or SYSTEM'],
    ['metadata that is a list', chunk('text-delta', delta.payload, { metadata: [] }), 'whose metadata is not an object'],
    ['a type that there is not', chunk('words', {}), 'which there is not. What is yours to say has a type that begins with data-'],
    ['a type of every object', chunk('constructor', {}), 'which there is not'],
    ['data with an id that is none', { type: 'data-x', runId, data: 1, id: 7 }, 'whose id is not a text'],
    ['a signal that nobody sent', { ...echo }, "which is the thread's to say"],
    ['a snapshot', { type: 'data-thread-snapshot', runId, data: {} }, "which is the thread's to say"],
    ['a list', [delta], 'it returned a list'],
  ])('is refused with %s', (_, made, why) => {
    expect(() => returnedChunk(made, delta)).toThrow(why)
    expect(() => emittedChunk(made, delta)).toThrow(why.replace('returned', 'emitted'))
  })

  it('is taken as it is otherwise', () => {
    const made = [
      chunk('text-delta', { id: '2', text: '' }), chunk('file', { data: 'AAAA', mimeType: 'image/png' }), chunk('source', { id: 's', sourceType: 'document', title: undefined }), chunk('raw', 7),
      chunk('tool-call', { ...call, args: null, note: 1 }), chunk('tool-output', { ...call, output: undefined }), chunk('response-metadata', {}), { type: 'data-x', runId, data: { any: ['thing'] }, note: 1 },
    ]
    for (const one of made) expect(returnedChunk(one, delta)).toEqual(one)
    expect(returnedChunk(undefined, delta)).toBe(delta)
    expect(returnedChunk(delta, delta)).toBe(delta)
    expect(returnedChunk(null, delta)).toBeUndefined()
  })

  it('has no place in the stream from before', () => {
    const shown = { ...delta, cursor: '1.4' }
    expect(returnedChunk(shown, delta)).toEqual(delta)
    const emitted = emittedChunk(delta, delta)
    expect([emitted, emitted === delta]).toEqual([delta, false])
  })
})

describe('[G2.34] what a run says of how it goes', () => {
  it('stays when a processor drops it, and may come back as a copy', () => {
    expect(returnedChunk(null, finish)).toBe(finish)
    expect(returnedChunk(structuredClone(finish), finish)).toEqual(finish)
    expect(() => emittedChunk(finish, finish)).toThrow("which is the run's to say")
    expect(() => emittedChunk(echo, echo)).toThrow("which is the run's to say")
  })

  it('may be changed only where that changes nothing of the run', () => {
    const noted = { ...finish, payload: { ...finish.payload, metadata: { seen: true } } }
    expect(returnedChunk(noted, finish)).toEqual(noted)
    expect(() => returnedChunk({ ...finish, payload: { ...finish.payload, metadata: 7 } }, finish)).toThrow('whose metadata is not an object')
    expect(() => returnedChunk({ ...finish, payload: { ...finish.payload, messageId: 'other' } }, finish)).toThrow('Nothing but metadata can be changed')
    const hidden = { ...waits, payload: { ...waits.payload, args: {}, suspendPayload: null } }
    expect(returnedChunk(hidden, waits)).toEqual(hidden)
    expect(() => returnedChunk({ ...waits, payload: { ...waits.payload, toolCallId: 'd' } }, waits)).toThrow('Nothing but args and suspendPayload can be changed')
    expect(() => returnedChunk({ ...finish, payload: {} }, finish)).toThrow('that says something else')
  })

  it('the echo of a signal may be reworded or dropped, and stays that signal', () => {
    const reworded = { ...echo, data: { ...(echo.data as object), contents: '***' } }
    expect([returnedChunk(reworded, echo), returnedChunk(null, echo)]).toEqual([reworded, undefined])
    expect(() => returnedChunk({ ...echo, data: { id: 'other', type: 'reactive', contents: 'x' } }, echo)).toThrow('of another signal')
    expect(() => returnedChunk({ ...echo, data: { id: 's', type: 'reactive' } }, echo)).toThrow('without contents')
  })
})
