import { useSyncExternalStore } from 'react'

let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of listeners) one()
  }, 1_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time, to the second. All displays share one timer. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export function clockOf(time: string | number | Date): string {
  return clock.format(new Date(time))
}

export function dayOf(time: string | number | Date): string {
  return day.format(new Date(time))
}

export function exactOf(time: string | number | Date): string {
  return full.format(new Date(time))
}

/** A distance in one unit: `4 s`, `12 min`, `3 h`, `5 d`. */
export function spanOf(ms: number): string {
  const seconds = Math.abs(ms) / 1_000
  if (seconds < 1) return `${Math.round(Math.abs(ms))} ms`
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  if (seconds < 129_600) return `${Math.round(seconds / 3_600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

/** A time, relative to now, with the exact time as its title. */
export function Time({ at }: { at: string | number | Date | undefined }) {
  const present = useNow()
  if (at === undefined) return null
  const time = new Date(at).getTime()
  const distance = present - time
  const text = Math.abs(distance) < 5_000 ? 'now' : distance > 0 ? `${wholeSpan(distance)} ago` : `in ${wholeSpan(-distance)}`
  return (
    <time dateTime={new Date(at).toISOString()} title={exactOf(at)}>
      {text}
    </time>
  )
}

function wholeSpan(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms / 1_000)} s` : spanOf(ms)
}
