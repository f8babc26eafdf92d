let last = Number.NaN
let text = ''

/** A time in ISO 8601. What is asked for many times in one millisecond is written once. */
export function isoTime(time: number): string {
  if (time !== last) {
    text = new Date(time).toISOString()
    last = time
  }
  return text
}
