import { describeValue } from '../base/arguments.ts'
import { isPlainObject } from '../base/json.ts'
import type { ProviderOptions } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { checkCallerId } from './normalize.ts'
import { invalidSignal } from './input-fields.ts'
import type { SignalAttributes, SignalContents, SignalInput } from './signal.ts'

/** The state of a lane, as its producer sends it. */
export interface StateInput {
  /** The lane: `browser`, `editor`. */
  id: string
  /** The producer's key of this state. A state with the key and mode of the last one is a duplicate. */
  cacheKey: string
  /** The text or parts that the model reads. */
  contents: SignalContents
  /** `snapshot`: the whole state. `delta`: a change of it. Defaults to `snapshot`. */
  mode?: 'snapshot' | 'delta'
  /** The whole state, for programs. */
  value?: unknown
  /** The change, for programs. Only with `mode: 'delta'`, and optional there. */
  delta?: unknown
  /** Defaults to `state`. */
  tagName?: string
  attributes?: SignalAttributes
  metadata?: Record<string, unknown>
  providerOptions?: ProviderOptions
  /** The id of the signal: sent twice to a thread, it is stored once. Generated when absent. */
  signalId?: string
}

interface StateSignal {
  input: SignalInput
  lane: { id: string; cacheKey: string; mode: 'snapshot' | 'delta' }
}

const fields = [
  'id', 'cacheKey', 'contents', 'mode', 'value', 'delta', 'tagName', 'attributes', 'metadata', 'providerOptions', 'signalId',
]

/** The signal of a state. The store assigns its version when it accepts the signal. */
export function stateSignal(state: StateInput, threadId: string | undefined): StateSignal {
  checkState(state)
  const { id, cacheKey, mode = 'snapshot', value, delta, metadata, signalId, ...signal } = state
  const lane = { id, cacheKey, mode }
  return {
    lane,
    input: {
      ...signal,
      type: 'state',
      ...(signalId === undefined ? {} : { id: typeof signalId === 'string' ? checkCallerId(signalId, 'signalId') : signalId }),
      metadata: {
        ...metadata,
        state: { ...lane, version: 0, ...(threadId === undefined ? {} : { threadId }) },
        ...(value === undefined ? {} : { value }),
        ...(delta === undefined ? {} : { delta }),
      },
    },
  }
}

function checkState(state: StateInput): void {
  if (!isPlainObject(state)) throw invalidSignal('state', `must be an object with id, cacheKey and contents, not ${describeValue(state)}.`)
  for (const [field, value] of Object.entries(state)) {
    if (value !== undefined && !fields.includes(field)) throw invalidSignal(field, `is not known. Known: ${fields.join(', ')}.`)
  }
  const { id, cacheKey, mode = 'snapshot', value, delta, metadata } = state as StateInput
  for (const [field, text] of Object.entries({ id, cacheKey })) {
    if (typeof text !== 'string' || text === '') throw invalidSignal(field, 'of a state must be a text that is not empty.')
  }
  if (mode !== 'snapshot' && mode !== 'delta') throw invalidSignal('mode', `is '${String(mode)}'. Use 'snapshot' or 'delta'.`)
  if (mode === 'snapshot' && delta !== undefined) {
    throw invalidSignal('delta', "is only for changes, and this state is a snapshot. Set mode: 'delta', or pass the whole state as value.")
  }
  for (const [field, passed] of Object.entries({ value, delta })) {
    if (passed !== undefined || metadata?.[field] === undefined) continue
    throw invalidSignal(`metadata.${field}`, `is where a state stores its ${field}. Pass it as ${field}, or under another name.`)
  }
}

/** The lane of a state signal, and the signal's position in it. */
export interface LanePosition {
  id: string
  mode: 'snapshot' | 'delta'
  cacheKey: string
  version: number
}

/** The position of a row in its lane; undefined for a row that is no state signal. */
export function lanePositionOf({ role, content }: Pick<MessageRow, 'role' | 'content'>): LanePosition | undefined {
  const signal = role === 'signal' ? content.metadata?.signal : undefined
  if (!isPlainObject(signal) || signal.type !== 'state' || !isPlainObject(signal.metadata)) return undefined
  const { state } = signal.metadata
  if (!isPlainObject(state) || typeof state.id !== 'string' || typeof state.version !== 'number') return undefined
  return { id: state.id, mode: state.mode === 'delta' ? 'delta' : 'snapshot', cacheKey: String(state.cacheKey), version: state.version }
}
