import { describe } from '../base/errors.ts'
import type { Run } from '../run/loop/run.ts'
import { processorLabel } from './hooks.ts'
import type { Processor, Tripwire } from './processor.ts'

/** Thrown by `abort()`, through the code of the processor to the run. */
export class TripwireAbort extends Error {
  readonly tripwire: Tripwire

  constructor(tripwire: Tripwire) {
    super(tripwire.reason)
    this.tripwire = tripwire
  }
}

/** The tripwire of a call of `abort()`, in a form that can be stored. Invalid arguments are replaced or left out: the rejection counts. */
export function createTripwire(
  run: Run, processor: Processor, reason: unknown, options: { retry?: boolean; metadata?: unknown } | undefined,
): TripwireAbort {
  const { id } = processor
  const { retry, metadata } = options ?? {}
  const isStorable = metadata === undefined || isJSON(metadata)
  if (!isStorable) {
    run.logger.warn(`processor ${processorLabel(processor)} rejected with metadata that is not JSON; it is left out`, { runId: run.id })
  }
  return new TripwireAbort({
    reason: reasonText(reason) || `Rejected by ${id}`,
    processorId: id,
    ...(retry === true ? { retry: true } : {}),
    ...(metadata !== undefined && isStorable ? { metadata } : {}),
  })
}

function reasonText(reason: unknown): string {
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
