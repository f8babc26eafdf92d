import type { Signal, SignalDataChunk, SignalDataPart } from './signal.ts'

export function signalToDataPart(signal: Signal): SignalDataPart {
  return { type: signal.type === 'user' ? 'data-user-message' : 'data-signal', data: withoutGuard(signal), transient: true }
}

export function signalToDataChunk(signal: Signal, runId: string): SignalDataChunk {
  return Object.assign(signalToDataPart(signal), { runId })
}

function withoutGuard(signal: Signal): Omit<Signal, 'guarded'> {
  if (!signal.guarded) return { ...signal }
  const { guarded: _, ...data } = signal
  return data
}
