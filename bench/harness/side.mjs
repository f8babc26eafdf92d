import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** What the benchmark wants this process to do. */
export const input = JSON.parse(process.argv[2] ?? '{}')

/** Hands the sample to the runner and ends: a side may have handles of its own that would keep the process. */
export function report(sample) {
  process.send(sample, () => process.exit(0))
}

/** Heed as it is installed in an empty project; `subpath` as in its exports. */
export function importHeed(subpath = '') {
  return import(heedEntry(subpath))
}

export function heedEntry(subpath = '') {
  const { resolve } = createRequire(join(input.heedProject, 'package.json'))
  return pathToFileURL(resolve(subpath === '' ? 'heed' : `heed/${subpath}`)).href
}

/** CPU of all threads of this process and wall time, in milliseconds. */
export function stopwatch() {
  const cpu = process.cpuUsage()
  const wall = performance.now()
  return () => {
    const { user, system } = process.cpuUsage(cpu)
    return { cpu: (user + system) / 1_000, wall: performance.now() - wall }
  }
}

/** The cost of one of `runs` runs, after `warmup` others. */
export async function perRun({ warmup, runs }, once) {
  for (let index = 0; index < warmup; index++) await once()
  const stop = stopwatch()
  for (let index = 0; index < runs; index++) await once()
  const { cpu, wall } = stop()
  return { cpu: cpu / runs, wall: wall / runs }
}

/** A benchmark that measures the wrong thing is worse than none. */
export function expect(what, actual, wanted) {
  if (actual !== wanted) throw new Error(`${what}: ${actual} instead of ${wanted}`)
}
