import { describe, expect, it } from 'vitest'
import { dotProducts, quantize, scaleBytes } from './quantized-vectors.ts'
import { VectorSlots } from './vector-slots.ts'

let seed = 7
const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const vector = (dimension: number) => Float32Array.from({ length: dimension }, () => chance() - 0.5)
function unit(numbers: Float32Array): Float32Array {
  const length = Math.hypot(...numbers)
  return numbers.map((number) => number / length)
}

describe('dot products with many vectors', () => {
  it.each([384, 10, 40, 1_536])('of %i numbers with four bits are cosines to within a tenth, less with more numbers, and the best one stays the best', (dimension) => {
    const vectors = Array.from({ length: 9_000 }, () => vector(dimension))
    const slots = new VectorSlots(dimension, 4)
    for (const one of vectors) slots.add(quantize(one))
    const question = unit(vectors[8_995] ?? vector(dimension))
    const found = slots.compare(question)
    const worst = vectors.reduce((most, one, at) => Math.max(most, Math.abs(unit(one).reduce((sum, number, n) => sum + number * (question[n] ?? 0), 0) - (found[at] ?? 9))), 0)
    expect(worst).toBeLessThan(0.3 / Math.sqrt(dimension))
    expect(found.indexOf(Math.max(...found))).toBe(8_995)
  })

  it.each([
    [384, 2_000],
    [10, 50],
    [1, 3],
    [1_536, 400],
    [3_072, 60],
  ])('of %i numbers are cosines to within half a percent, and the best one stays the best', (dimension, count) => {
    const question = unit(vector(dimension))
    const vectors = Array.from({ length: count }, () => vector(dimension))
    vectors[count - 1] = question.map((number) => number * 3)
    const slots = new VectorSlots(dimension, 8)
    for (const one of vectors) slots.add(quantize(one))
    const found = slots.compare(question)
    const exact = vectors.map((one) => unit(one).reduce((sum, number, at) => sum + number * (question[at] ?? 0), 0))
    expect(Math.max(...exact.map((cosine, at) => Math.abs(cosine - (found[at] ?? 9))))).toBeLessThan(0.01)
    expect(found.indexOf(Math.max(...found))).toBe(exact.indexOf(Math.max(...exact)))
  })

  it.each([[384, 8], [384, 4], [10, 8]] as const)('of %i numbers with %i bits are the same for vectors that were added at once', (dimension, bits) => {
    const vectors = Array.from({ length: 5_000 }, () => quantize(vector(dimension)))
    const [one, all] = [new VectorSlots(dimension, bits), new VectorSlots(dimension, bits)]
    for (const bytes of vectors) one.add(bytes)
    for (const [from, to] of [[0, 70], [70, 4_500], [4_500, 5_000]]) expect(all.addAll(Buffer.concat(vectors.slice(from, to)))).toBe(from)
    all.set(4_200, vectors[3] ?? new Uint8Array(0))
    one.set(4_200, vectors[3] ?? new Uint8Array(0))
    const question = unit(vector(dimension))
    expect([...all.compare(question)]).toEqual([...one.compare(question)])
  })

  it('the largest possible numbers don\'t overflow, and a vector of zeros has the product 0', () => {
    const question = new Float32Array(8_000).fill(1 / Math.sqrt(8_000))
    const stored = (scale: number, number: number) => {
      const bytes = new Uint8Array(scaleBytes + 8_000).fill(number, scaleBytes)
      new DataView(bytes.buffer).setFloat32(0, scale, true)
      return bytes
    }
    const [up, down] = [dotProducts(question, stored(1, 127), 1, 8), dotProducts(question, stored(1, -127), 1, 8)]
    expect(up[0]).toBeCloseTo(127 * Math.sqrt(8_000), 0)
    expect(down[0]).toBeCloseTo(-127 * Math.sqrt(8_000), 0)
    expect(dotProducts(question, stored(0, 0), 1, 8)[0]).toBe(0)
    expect(dotProducts(question, new Uint8Array(0), 0, 8)).toHaveLength(0)
  })
})
