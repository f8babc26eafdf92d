import type { Signal } from './signal.ts'

/** What watchers are told of a signal. It is not stored: the signal's own row is. */
export interface SignalDataPart {
  type: 'data-user-message' | 'data-signal'
  data: Omit<Signal, 'guarded'>
  transient: true
}

/** The chunk with which a signal shows itself in the stream of the run that took it. */
export interface SignalDataChunk extends SignalDataPart {
  runId: string
}

export function signalToDataPart(signal: Signal): SignalDataPart {
  const data = shown(signal)
  return { type: signal.type === 'user' ? 'data-user-message' : 'data-signal', data, transient: true }
}

export function signalToDataChunk(signal: Signal, runId: string): SignalDataChunk {
  return Object.assign(signalToDataPart(signal), { runId })
}

function shown(signal: Signal): Omit<Signal, 'guarded'> {
  if (!signal.guarded) return { ...signal }
  const { guarded: _, ...data } = signal
  return data
}
