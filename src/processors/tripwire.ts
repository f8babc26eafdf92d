import { describe } from '../base/errors.ts'
import type { Run } from '../run/loop/run.ts'
import { called } from './called.ts'
import type { Processor, Tripwire } from './processor.ts'

/** Thrown by `abort()`. Travels through the processor's own code to the run that asked it. */
export class TripwireAbort extends Error {
  readonly tripwire: Tripwire

  constructor(tripwire: Tripwire) {
    super(tripwire.reason)
    this.tripwire = tripwire
  }
}

/** A refusal in a form that can be stored and sent. Nothing that a processor says of it can make it fail: it refuses. */
export function refusal(run: Run, processor: Processor, reason: unknown, options: { retry?: boolean; metadata?: unknown } | undefined): TripwireAbort {
  const { id } = processor
  const { retry, metadata } = options ?? {}
  const told = metadata === undefined || isJSON(metadata)
  if (!told) run.logger.warn(`processor ${called(processor)} refused with metadata that is no JSON; it is left out`, { runId: run.id })
  return new TripwireAbort({
    reason: inWords(reason) || `Refused by ${id}`,
    processorId: id,
    ...(retry === true ? { retry: true } : {}),
    ...(metadata !== undefined && told ? { metadata } : {}),
  })
}

function inWords(reason: unknown): string {
  if (typeof reason === 'string') return reason
  if (reason === undefined || reason === null) return ''
  if (reason instanceof Error) return describe(reason)
  return isJSON(reason) ? JSON.stringify(reason) : String(reason)
}

function isJSON(value: unknown): boolean {
  try {
    return typeof JSON.stringify(value) === 'string'
  } catch {
    return false
  }
}
