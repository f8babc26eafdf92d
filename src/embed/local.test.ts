import { afterAll, describe, expect, it } from 'vitest'
import { fastembed, localEmbedder } from './index.ts'

afterAll(() => fastembed.close())

const cosine = (a: readonly number[] = [], b: readonly number[] = []) => a.reduce((sum, number, at) => sum + number * (b[at] ?? 0), 0)

describe('the local embedder', () => {
  it('[K3.1] embeds offline, the same vector for the same text, without blocking the event loop', async () => {
    const delays: number[] = []
    let last = performance.now()
    const ticking = setInterval(() => {
      delays.push(performance.now() - last)
      last = performance.now()
    }, 5)
    const values = ['My dog is very old.', 'Our aged hound.', 'The invoice is due on Friday.']
    const { embeddings: [dog, hound, invoice] } = await localEmbedder().doEmbed({ values })
    clearInterval(ticking)
    expect(dog).toHaveLength(384)
    expect(cosine(dog, dog)).toBeCloseTo(1, 3)
    expect(cosine(dog, hound)).toBeGreaterThan(cosine(dog, invoice) + 0.2)
    const { embeddings: [again] } = await fastembed.doEmbed({ values: [values[0] ?? ''] })
    expect(again).toEqual(dog)
    expect(delays.length).toBeGreaterThan(3)
    expect([fastembed.engine, fastembed.modelId]).toBeOneOf([['onnxruntime', 'all-minilm-l6-v2-words'], ['wasm', 'all-minilm-l6-v2']])
  })

  it('embeds a question before pending lists', async () => {
    const order: string[] = []
    const list = fastembed.doEmbed({ values: Array.from({ length: 9 }, (_, at) => `Text number ${at}.`) }).then(() => order.push('list'))
    const question = fastembed.doEmbed({ values: ['A question?'] }).then(() => order.push('question'))
    await Promise.all([list, question])
    expect(order).toEqual(['question', 'list'])
  })

  it('rejects aborted calls, and starts again after close()', async () => {
    await expect(fastembed.doEmbed({ values: ['x'], abortSignal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    const cut = fastembed.doEmbed({ values: ['one', 'two'] })
    const closed = expect(cut).rejects.toMatchObject({ code: 'closed' })
    await fastembed.close()
    await closed
    expect((await fastembed.doEmbed({ values: ['again'] })).embeddings[0]).toHaveLength(384)
  })
})
