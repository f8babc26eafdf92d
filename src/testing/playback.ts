import { sleep, type Clock } from '../base/clock.ts'
import type { ScriptedAnswer } from './script.ts'

/** How fast an answer is said. */
export interface Pace {
  /** Time before each delta, by the clock. 0: everything at once. */
  deltaMs: number
}

export interface PlaybackContext {
  clock: Clock
  /** Ends every wait at once. */
  signal: AbortSignal
}

/** What a call waits for before it answers. Throws the step's `error` as it was written. */
export async function beforeAnswer(step: ScriptedAnswer, { clock, signal }: PlaybackContext): Promise<void> {
  signal.throwIfAborted()
  if (step.delayMs) await sleep(clock, step.delayMs, signal)
  if (step.gate && !('until' in step.gate)) await unlessAborted(step.gate, signal)
  if (step.error) throw step.error
}

/**
 * Says when: yields, again and again, how many of the parts are due by now, and ends when all are. Throws where the step
 * breaks (the step's error, as it was written) and when the signal aborts.
 */
export async function* playback(
  step: ScriptedAnswer,
  parts: ReadonlyArray<{ type: string }>,
  { clock, signal, pace, opening = 0 }: PlaybackContext & { pace?: Pace | undefined; opening?: number },
): AsyncGenerator<number, void, undefined> {
  const gate = step.gate && 'until' in step.gate ? step.gate : undefined
  const silentFrom = hangPoint(step, parts, opening)
  let due = 0
  const say = function* (count: number) {
    if (count > due) yield (due = count)
  }
  for (let index = 0; index <= parts.length; index++) {
    const counted = index - opening
    if (gate && (counted === gate.parts || (index === parts.length && counted < gate.parts))) {
      yield* say(index)
      await unlessAborted(gate.until, signal)
    }
    if (step.errorAfter && (counted === step.errorAfter.parts || index === parts.length)) {
      yield* say(index)
      throw step.errorAfter.error ?? new Error('The scripted answer broke here.')
    }
    if (index === silentFrom) {
      yield* say(index)
      await unlessAborted(new Promise<never>(() => {}), signal)
    }
    if (pace?.deltaMs && parts[index]?.type.endsWith('-delta')) {
      yield* say(index)
      await sleep(clock, pace.deltaMs, signal)
    }
  }
  yield* say(parts.length)
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
 * A stream that says parts as they become due. Nothing is made before it is asked for; what is due at once is enqueued at
 * once. When the signal aborts, what was not read yet is dropped and the stream errors with the signal's reason.
 */
export function partStream<Source, Part>(
  parts: readonly Source[],
  due: (signal: AbortSignal) => AsyncGenerator<number, void, undefined>,
  form: { part: (source: Source) => Part | undefined; error: (error: unknown) => unknown },
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
          for (let said = 0; said === 0; ) {
            const next = await counts.next()
            if (stop.signal.aborted) return
            if (next.done) {
              release()
              return controller.close()
            }
            for (; sent < next.value; sent++) {
              const part = form.part(parts[sent]!)
              if (part === undefined) continue
              controller.enqueue(part)
              said++
            }
          }
        } catch (error) {
          release()
          if (!stop.signal.aborted) controller.error(form.error(error))
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
