import { describe, expect, it } from 'vitest'
import { dotProducts, quantize, quantizedNumbers, quantizedScale, strideOf } from './quantized-vectors.ts'
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
    for (const one of vectors) slots.add(new DataView(quantize(one).buffer))
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
    const stride = strideOf(dimension)
    const numbers = new Int8Array(count * stride)
    const scales = new Float32Array(count)
    for (const [at, one] of vectors.entries()) {
      const bytes = quantize(one)
      numbers.set(quantizedNumbers(bytes), at * stride)
      scales[at] = quantizedScale(bytes)
    }
    const found = dotProducts(question, numbers, scales, count)
    const exact = vectors.map((one) => unit(one).reduce((sum, number, at) => sum + number * (question[at] ?? 0), 0))
    expect(Math.max(...exact.map((cosine, at) => Math.abs(cosine - (found[at] ?? 9))))).toBeLessThan(0.01)
    expect(found.indexOf(Math.max(...found))).toBe(exact.indexOf(Math.max(...exact)))
  })

  it('the largest possible numbers don\'t overflow, and a vector of zeros has the product 0', () => {
    const question = new Float32Array(8_000).fill(1 / Math.sqrt(8_000))
    const [up, down] = [
      dotProducts(question, new Int8Array(8_000).fill(127), Float32Array.of(1), 1),
      dotProducts(question, new Int8Array(8_000).fill(-127), Float32Array.of(1), 1),
    ]
    expect(up[0]).toBeCloseTo(127 * Math.sqrt(8_000), 0)
    expect(down[0]).toBeCloseTo(-127 * Math.sqrt(8_000), 0)
    expect(dotProducts(question, new Int8Array(8_000), Float32Array.of(0), 1)[0]).toBe(0)
    expect(dotProducts(question, new Int8Array(0), new Float32Array(0), 0)).toHaveLength(0)
  })
})
