import { describe, expect, it } from 'vitest'
import { dotProducts, quantize, quantizedNumbers, quantizedScale, strideOf } from './quantized-vectors.ts'

let seed = 7
const chance = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
const vector = (dimension: number) => Float32Array.from({ length: dimension }, () => chance() - 0.5)
function unit(numbers: Float32Array): Float32Array {
  const length = Math.hypot(...numbers)
  return numbers.map((number) => number / length)
}

describe('dot products with many vectors', () => {
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
