import { describe, expect, it } from 'vitest'
import type { Chunk } from '../../message/chunk.ts'
import { ChunkLog } from './chunk-log.ts'

const chunk = (id: string): Chunk => ({ type: 'text-start', runId: 'r', from: 'AGENT', payload: { id } })
const everything = (log: ChunkLog) => log.read((entry) => entry)[Symbol.asyncIterator]()

describe('a reader of a log', () => {
  it('ends its pending read when it returns, without an effect on other readers', async () => {
    const log = new ChunkLog()
    const leaving = everything(log)
    const staying = everything(log)
    const [waiting, other] = [leaving.next(), staying.next()]
    expect(await leaving.return?.()).toEqual({ done: true, value: undefined })
    expect(await waiting).toEqual({ done: true, value: undefined })
    log.push(chunk('a'))
    expect(await other).toEqual({ done: false, value: chunk('a') })
    expect(await leaving.next()).toEqual({ done: true, value: undefined })
    log.end()
    expect(await staying.next()).toEqual({ done: true, value: undefined })
  })

  it('starts at the first chunk, whenever it was created', async () => {
    const log = new ChunkLog()
    log.push(chunk('a'))
    log.end()
    expect(await everything(log).next()).toEqual({ done: false, value: chunk('a') })
    expect(await everything(log).next()).toEqual({ done: false, value: chunk('a') })
  })
})
