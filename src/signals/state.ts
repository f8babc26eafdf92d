import { HeedError } from '../base/errors.ts'
import { isPlainObject } from './json-copy.ts'
import { describe, refusal } from './refusal.ts'
import { ownId } from './reserved-ids.ts'
import type { SignalAttributes, SignalContents, SignalInput } from './signal.ts'
import type { ProviderOptions } from '../message/message.ts'

/** The state of a lane, as its producer sees it. */
export interface StateInput {
  /** The lane: `browser`, `editor`. */
  id: string
  /** The producer's own key of this state. The same key and mode again are nothing new. */
  cacheKey: string
  /** What the model reads. */
  contents: SignalContents
  /** The whole state, or what changed. Defaults to `snapshot`. */
  mode?: 'snapshot' | 'delta'
  /** The whole state, for programs. */
  value?: unknown
  /** What changed, for programs: of a `delta` only, which may also say it in `contents` alone. */
  delta?: unknown
  /** Defaults to `state`. */
  tagName?: string
  attributes?: SignalAttributes
  metadata?: Record<string, unknown>
  providerOptions?: ProviderOptions
  /** Of the signal that carries it: the same id on a thread is the same signal, however often it is sent. Made up unless given. */
  signalId?: string
}

export interface StateSignal {
  input: SignalInput
  lane: { id: string; cacheKey: string; mode: 'snapshot' | 'delta' }
}

const fields = ['id', 'cacheKey', 'contents', 'mode', 'value', 'delta', 'tagName', 'attributes', 'metadata', 'providerOptions', 'signalId']

/** A state as the signal that carries it. Its version is given when it is accepted. */
export function stateSignal(state: StateInput, threadId: string | undefined): StateSignal {
  if (!isPlainObject(state)) throw refusal('state', `must be an object with id, cacheKey and contents, not ${describe(state)}.`)
  for (const [field, value] of Object.entries(state)) if (value !== undefined && !fields.includes(field)) throw refusal(field, `is not known. Known: ${fields.join(', ')}.`)
  const { id, cacheKey, mode = 'snapshot', value, delta, metadata, signalId, ...signal } = state as StateInput
  for (const [field, text] of Object.entries({ id, cacheKey })) {
    if (typeof text !== 'string' || text === '') throw new HeedError('invalid_signal', `A state signal needs its ${field}: a text that is not empty.`, { details: { field } })
  }
  if (mode !== 'snapshot' && mode !== 'delta') throw new HeedError('invalid_signal', `mode '${String(mode)}' is not known. Use 'snapshot' or 'delta'.`, { details: { field: 'mode' } })
  if (mode === 'snapshot' && delta !== undefined) {
    throw new HeedError('invalid_signal', "delta is what changed, and this is a snapshot. Say mode: 'delta', or pass the whole state as value.", { details: { field: 'delta' } })
  }
  for (const [field, given] of Object.entries({ value, delta })) {
    if (given !== undefined || metadata?.[field] === undefined) continue
    const why = `metadata.${field} is where a state keeps its ${field}: pass it as ${field}, or under another name.`
    throw new HeedError('invalid_signal', why, { details: { field: `metadata.${field}` } })
  }
  const lane = { id, cacheKey, mode }
  return {
    lane,
    input: {
      ...signal,
      type: 'state',
      ...(signalId === undefined ? {} : { id: typeof signalId === 'string' ? ownId(signalId, 'signalId') : signalId }),
      metadata: {
        ...metadata,
        state: { ...lane, version: 0, ...(threadId === undefined ? {} : { threadId }) },
        ...(value === undefined ? {} : { value }),
        ...(delta === undefined ? {} : { delta }),
      },
    },
  }
}
