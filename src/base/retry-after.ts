/** Milliseconds that whoever answered asked to wait, in its headers: `retry-after-ms`, or `retry-after` as seconds or a date. */
export function retryAfter(headers: Readonly<Record<string, string>> | undefined, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers?.['retry-after-ms'] ?? '')
  if (milliseconds >= 0) return milliseconds
  const after = headers?.['retry-after']
  if (after === undefined) return undefined
  const seconds = Number.parseFloat(after)
  if (seconds >= 0) return seconds * 1000
  const date = Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
