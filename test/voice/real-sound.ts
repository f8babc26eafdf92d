import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram, whySkipped, type Found } from '../../scripts/programs.ts'
import { toWav } from '../../src/voice/sound/wav.ts'

const run = promisify(execFile)
const [espeak, sox] = await Promise.all([findProgram('espeak'), findProgram('sox')])
const found: Found = 'missing' in espeak ? espeak : sox

/** Whether a program is missing; and why, for the titles of the tests that are skipped. */
export const missing = 'missing' in found
export const why = whySkipped(found)
export const rate = 24_000

const pathOf = (program: Found) => ('path' in program ? program.path : '')

async function inFiles<T>(count: number, work: (files: string[]) => Promise<T>): Promise<T> {
  const files = Array.from({ length: count }, () => join(tmpdir(), `sound-${randomUUID()}.wav`))
  try {
    return await work(files)
  } finally {
    await Promise.all(files.map((file) => rm(file, { force: true })))
  }
}

/** A text as espeak-ng says it: samples of 16 bits, 24,000 a second. */
export function spoken(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return inFiles(1, async ([said = '']) => {
    await run(pathOf(espeak), ['-v', 'en', '-s', '150', '-w', said, text])
    const { stdout } = await run(pathOf(sox), [said, '-t', 'raw', '-r', String(rate), '-e', 'signed', '-b', '16', '-c', '1', '-D', '-'], {
      encoding: 'buffer', maxBuffer: 1 << 26,
    })
    return new Uint8Array(stdout)
  })
}

/** Writes sound as a file of 48,000 samples a second, as a microphone has it. */
export async function asMicrophoneFile(pcm: Uint8Array, file: string): Promise<void> {
  await inFiles(1, async ([given = '']) => {
    await writeFile(given, toWav({ pcm, rate }))
    await run(pathOf(sox), [given, '-r', '48000', file])
  })
}

/** The loudness of a sound by SoX: the root of the mean square. */
export function loudness(pcm: Uint8Array): Promise<number> {
  return inFiles(1, async ([file = '']) => {
    await writeFile(file, toWav({ pcm, rate }))
    return statistic([file])
  })
}

/**
 * How much of a sound is not in another one, by SoX: what is left of `wanted` where it is found in `given`, over its loudness. 0: it is
 * there sample by sample. `volume` is by how much `given` is louder.
 */
export async function difference(wanted: Uint8Array, given: Uint8Array): Promise<{ left: number; at: number; volume: number }> {
  const { at, volume } = place(samplesOf(wanted), samplesOf(given))
  const part = given.slice(at * 2, at * 2 + wanted.length)
  return inFiles(2, async ([one = '', other = '']) => {
    await Promise.all([writeFile(one, toWav({ pcm: wanted, rate })), writeFile(other, toWav({ pcm: part, rate }))])
    const left = await statistic(['-m', '-v', '1', one, '-v', String(-1 / volume), other])
    return { left: left / (await statistic([one])), at, volume }
  })
}

/**
 * The same for a sound that went through devices, which lose some of it on a busy machine: of pieces of 100 ms, each where it is found, the
 * median of what is left.
 */
export async function typicalDifference(wanted: Uint8Array, given: Uint8Array): Promise<number> {
  const size = 2 * 2_400
  const lefts: number[] = []
  for (let at = 0; at + size <= wanted.length && lefts.length < 9; at += size) {
    const piece = wanted.subarray(at, at + size)
    // A pause can't be found.
    if ((await loudness(piece)) > 0.02) lefts.push((await difference(piece, given)).left)
  }
  return lefts.toSorted((a, b) => a - b)[Math.floor(lefts.length / 2)] ?? Infinity
}

async function statistic(input: string[]): Promise<number> {
  const { stderr } = await run(pathOf(sox), [...input, '-n', 'stat'])
  return Number(/RMS\s+amplitude:\s+([\d.]+)/.exec(stderr)?.[1])
}

function samplesOf(pcm: Uint8Array): Int16Array {
  return new Int16Array(pcm.slice(0, pcm.length - (pcm.length % 2)).buffer)
}

/** Where the loudest part of one sound is in another one, and by how much it is louder there. */
function place(wanted: Int16Array, given: Int16Array): { at: number; volume: number } {
  const size = Math.min(wanted.length, 2_400)
  const power = (samples: Int16Array, from: number) => {
    let sum = 0
    for (let index = 0; index < size; index++) sum += (samples[from + index] ?? 0) ** 2
    return sum
  }
  let loudest = 0
  for (let from = 0; from + size <= wanted.length; from += 240) if (power(wanted, from) > power(wanted, loudest)) loudest = from
  const own = power(wanted, loudest)
  let best = { at: 0, share: -Infinity, volume: 1 }
  const look = (from: number, near: number, taps: number) => {
    let product = 0
    for (let index = 0; index < size; index += taps) product += (given[from + index] ?? 0) * (wanted[loudest + index] ?? 0)
    // By how much they are alike, whatever their loudness.
    const share = (taps * product) / Math.sqrt(own * (near + 1))
    if (share > best.share) best = { at: from - loudest, share, volume: product / own }
  }
  // First with every fourth sample at every second place, then all around the best of them.
  let near = power(given, 0)
  for (let from = 0; from + size <= given.length; from++) {
    if (from % 2 === 0 && near > own / 100) look(from, near, 4)
    near += (given[from + size] ?? 0) ** 2 - (given[from] ?? 0) ** 2
  }
  const around = best.at + loudest
  best = { at: 0, share: -Infinity, volume: 1 }
  for (let from = Math.max(0, around - 4); from <= around + 4; from++) look(from, power(given, from), 1)
  return { at: Math.max(0, best.at), volume: best.volume }
}

