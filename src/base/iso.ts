const dayMs = 86_400_000
/** The first millisecond of the year 10,000, which is written differently. */
const far = 253_402_300_800_000

const sixtieths = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
const thousandths = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))

let last = Number.NaN
let text = ''
let textBefore = ''
let lastDay = Number.NaN
let date = ''

/** A time in ISO 8601. What is asked for many times in one millisecond is written once, and its date once a day: where many are compared, that counts. */
export function isoTime(time: number): string {
  if (time !== last) {
    textBefore = text
    text = written(time)
    last = time
  }
  return text
}

/** True for the texts that were written last: they are as they should be. */
export function isWritten(iso: string): boolean {
  return iso === text || iso === textBefore
}

/** The date that such a text names. The one that was written last needs no reading. */
export function dateOf(iso: string): Date {
  return new Date(iso === text ? last : iso)
}

function written(time: number): string {
  if (!Number.isInteger(time) || time < 0 || time >= far) return new Date(time).toISOString()
  const day = Math.floor(time / dayMs)
  if (day !== lastDay) {
    date = new Date(time).toISOString().slice(0, 11)
    lastDay = day
  }
  const rest = time - day * dayMs
  return `${date}${sixtieths[Math.floor(rest / 3_600_000)]}:${sixtieths[Math.floor(rest / 60_000) % 60]}:${sixtieths[Math.floor(rest / 1_000) % 60]}.${thousandths[rest % 1_000]}Z`
}
