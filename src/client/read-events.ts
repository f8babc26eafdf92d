import { HeedError, isHeedError } from '../base/errors.ts'

/**
 * The data of each server-sent event. Ends at `[DONE]` or at the end of the response; throws if the connection fails or is silent for
 * longer than `maxSilenceMs`.
 */
export async function* readEvents(response: Response, maxSilenceMs: number): AsyncGenerator<unknown> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), maxSilenceMs)
      if (done) return
      rest += value
      const frames = rest.split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const data = dataOf(frame)
        if (data === undefined) continue
        if (data === '[DONE]') return
        yield parse(data)
      }
    }
  } finally {
    // Closes the connection if the reader stops early.
    await reader.cancel().catch(() => {})
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch (cause) {
    throw lost('The stream has an event that is not JSON.', { cause })
  }
}

function dataOf(frame: string): string | undefined {
  const lines = frame.split('\n').filter((line) => line.startsWith('data:'))
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(line.startsWith('data: ') ? 6 : 5)).join('\n')
}

/** Heartbeats are more frequent than `ms`, so silence means that the connection is dead. */
async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(lost(`The server sent nothing for ${ms} ms.`, { details: { silenceMs: ms } })), ms)
  })
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    throw isHeedError(cause) ? cause : lost('The connection was lost.', { cause })
  } finally {
    clearTimeout(timer)
  }
}

function lost(message: string, options: { cause?: unknown; details?: Record<string, unknown> }): HeedError {
  return new HeedError('unreachable', `${message} Subscribe again to continue.`, { ...options, retryable: true })
}
