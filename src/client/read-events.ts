import { HeedError, isHeedError } from '../base/errors.ts'

/** The data of each server-sent event. Ends at `[DONE]`, or when the connection does; throws when it broke, or nothing came for too long. */
export async function* readEvents(response: Response, idleMs: number): AsyncGenerator<unknown> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await withinTime(reader.read(), idleMs)
      if (done) return
      rest += value
      const frames = rest.split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const data = dataOf(frame)
        if (data === undefined) continue
        if (data === '[DONE]') return
        yield parsed(data)
      }
    }
  } finally {
    // A connection that is left must not stay open.
    await reader.cancel().catch(() => {})
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch (cause) {
    throw lost('Something came that the server does not say.', { cause })
  }
}

function dataOf(frame: string): string | undefined {
  const lines = frame.split('\n').filter((line) => line.startsWith('data:'))
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(line.startsWith('data: ') ? 6 : 5)).join('\n')
}

/** Heartbeats come more often than this: silence means that the connection is dead, whatever the network says. */
async function withinTime<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(lost(`Nothing was heard from the server for ${ms} ms.`, { details: { silenceMs: ms } })), ms)
  })
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    throw isHeedError(cause) ? cause : lost('The connection broke off.', { cause })
  } finally {
    clearTimeout(timer)
  }
}

function lost(what: string, more: { cause?: unknown; details?: Record<string, unknown> }): HeedError {
  return new HeedError('unreachable', `${what} Subscribe again to go on.`, { ...more, retryable: true })
}
