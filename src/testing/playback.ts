import { checkNames, refused } from '../base/arguments.ts'
import { sleep, type Clock } from '../base/clock.ts'
import type { ScriptedAnswer } from './script.ts'

/** How fast an answer is streamed. */
export interface Pace {
  /** The time before each delta, by the clock. 0: all deltas at once. */
  deltaMs: number
}

export function checkPace(pace: Pace): void {
  checkNames('pace', pace, ['deltaMs'])
  if (!(pace.deltaMs >= 0)) throw refused('pace.deltaMs', 'a number of milliseconds of at least 0')
}

export interface PlaybackContext {
  clock: Clock
  /** Ends every wait. */
  signal: AbortSignal
}

/** Waits until the call may answer. Throws the step's `error` unchanged. */
export async function beforeAnswer(step: ScriptedAnswer, { clock, signal }: PlaybackContext): Promise<void> {
  signal.throwIfAborted()
  if (step.delayMs) await sleep(clock, step.delayMs, signal)
  if (step.gate && !('until' in step.gate)) await unlessAborted(step.gate, signal)
  if (step.error) throw step.error
}

/**
 * Yields the number of parts that are due, each time that it grows, and ends when all are. Throws the step's error where the step
 * breaks, and when the signal aborts.
 */
export async function* playback(
  step: ScriptedAnswer,
  parts: ReadonlyArray<{ type: string }>,
  { clock, signal, pace, opening = 0 }: PlaybackContext & { pace?: Pace | undefined; opening?: number },
): AsyncGenerator<number, void, undefined> {
  const gate = step.gate && 'until' in step.gate ? step.gate : undefined
  const silentFrom = hangPoint(step, parts, opening)
  let due = 0
  const yieldUpTo = function* (count: number) {
    if (count > due) yield (due = count)
  }
  for (let index = 0; index <= parts.length; index++) {
    const counted = index - opening
    if (gate && (counted === gate.parts || (index === parts.length && counted < gate.parts))) {
      yield* yieldUpTo(index)
      await unlessAborted(gate.until, signal)
    }
    if (step.errorAfter && (counted === step.errorAfter.parts || index === parts.length)) {
      yield* yieldUpTo(index)
      throw step.errorAfter.error ?? new Error('The scripted answer broke here.')
    }
    if (index === silentFrom) {
      yield* yieldUpTo(index)
      await unlessAborted(new Promise<never>(() => {}), signal)
    }
    if (pace?.deltaMs && parts[index]?.type.endsWith('-delta')) {
      yield* yieldUpTo(index)
      await sleep(clock, pace.deltaMs, signal)
    }
  }
  yield* yieldUpTo(parts.length)
}

function hangPoint({ hang }: ScriptedAnswer, parts: ReadonlyArray<{ type: string }>, opening: number): number | undefined {
  if (!hang) return undefined
  const end = parts.at(-1)?.type === 'finish' ? parts.length - 1 : parts.length
  return hang === true ? end : Math.min(end, opening + hang.parts)
}

function unlessAborted(wait: PromiseLike<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    wait.then(
      () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort)
        reject(error)
      },
    )
  })
}

/**
 * A stream of parts as they become due. Parts are created when they are read. When the signal aborts, parts that were not read are
 * dropped and the stream errors with the signal's reason.
 */
export function partStream<Source, Part>(
  parts: readonly Source[],
  due: (signal: AbortSignal) => AsyncGenerator<number, void, undefined>,
  convert: { part: (source: Source) => Part | undefined; error: (error: unknown) => unknown },
  signal: AbortSignal | undefined,
): ReadableStream<Part> {
  const stop = new AbortController()
  const counts = due(stop.signal)
  let sent = 0
  let onAbort = () => {}
  const release = () => signal?.removeEventListener('abort', onAbort)

  return new ReadableStream<Part>(
    {
      start(controller) {
        onAbort = () => {
          stop.abort(signal?.reason)
          controller.error(signal?.reason)
        }
        if (signal?.aborted) onAbort()
        else signal?.addEventListener('abort', onAbort, { once: true })
      },
      async pull(controller) {
        try {
          for (let enqueued = 0; enqueued === 0; ) {
            const next = await counts.next()
            if (stop.signal.aborted) return
            if (next.done) {
              release()
              return controller.close()
            }
            for (; sent < next.value; sent++) {
              const part = convert.part(parts[sent]!)
              if (part === undefined) continue
              controller.enqueue(part)
              enqueued++
            }
          }
        } catch (error) {
          release()
          if (!stop.signal.aborted) controller.error(convert.error(error))
        }
      },
      cancel(reason) {
        release()
        stop.abort(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
