import { array, assert, integer, property } from 'fast-check'
import { expect, it } from 'vitest'
import { fromBytes, Resampler, toBytes } from './resampler.ts'

function tone(hertz: number, rate: number, seconds = 0.5): Float32Array {
  return Float32Array.from({ length: Math.round(rate * seconds) }, (_, index) => 0.5 * Math.sin((2 * Math.PI * hertz * index) / rate))
}

function resampled(samples: Float32Array, from: number, to: number, pieces: readonly number[] = []): Float32Array {
  const resampler = new Resampler(from, to)
  const given: number[] = []
  let at = 0
  for (const length of [...pieces, samples.length]) {
    given.push(...resampler.push(samples.slice(at, at + length)))
    at += length
  }
  return Float32Array.from([...given, ...resampler.end()])
}

/** The root of the mean square, without the first and last 20 ms. */
function loudness(samples: ArrayLike<number>, rate: number): number {
  const inner = Array.from(samples).slice(rate / 50, -rate / 50)
  return Math.sqrt(inner.reduce((sum, sample) => sum + sample ** 2, 0) / inner.length)
}

it.each([[48_000, 24_000], [44_100, 24_000], [16_000, 24_000], [24_000, 48_000], [24_000, 44_100], [22_050, 48_000], [24_001, 48_000], [24_000, 24_000]])(
  '[Z7.2] a tone keeps its height and its loudness, from %i to %i samples a second', (from, to) => {
    const given = resampled(tone(1_000, from), from, to)
    const ideal = tone(1_000, to, given.length / to)
    expect(Math.abs(given.length - to / 2)).toBeLessThanOrEqual(1)
    const error = loudness(given.map((sample, index) => sample - (ideal[index] ?? 0)), to)
    // 66 dB below the tone.
    expect(error / loudness(ideal, to)).toBeLessThan(0.000_5)
  },
)

it('[Z7.2] what the new rate cannot carry does not become another sound', () => {
  const given = resampled(tone(16_000, 48_000), 48_000, 24_000)
  expect(loudness(given, 24_000) / loudness(tone(16_000, 48_000), 48_000)).toBeLessThan(0.001)
})

it('[Z7.2] the pieces that a sound comes in change nothing of it', () => {
  const whole = tone(440, 44_100, 0.1)
  const expected = resampled(whole, 44_100, 24_000)
  assert(property(array(integer({ min: 0, max: 900 }), { maxLength: 12 }), (pieces) => {
    expect(resampled(whole, 44_100, 24_000, pieces)).toEqual(expected)
  }))
})

it('samples become bytes and samples again, and loud ones are clipped', () => {
  expect([...toBytes(Float32Array.from([0, 1, -1, 2, -2]))]).toEqual([0, 0, 255, 127, 1, 128, 255, 127, 1, 128])
  const samples = Float32Array.from([0, 0.5, -0.25])
  const again = fromBytes(toBytes(samples))
  for (const [index, sample] of samples.entries()) expect(again[index]).toBeCloseTo(sample, 3)
  // A view into a larger buffer, at an odd place.
  const shifted = new Uint8Array(7)
  shifted.set(toBytes(samples), 1)
  expect(fromBytes(shifted.subarray(1))).toEqual(again)
})
