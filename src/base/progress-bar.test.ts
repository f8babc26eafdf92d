import { describe, expect, it } from 'vitest'
import { createConsoleLogger } from './logger.ts'
import { ProgressBar } from './progress-bar.ts'

const erased = '\r\u001B[K'

describe('the bar of long work', () => {
  it('is one line that is replaced, with the cursor at its beginning, and removed at the end', () => {
    const written: string[] = []
    const bar = new ProgressBar((text) => void written.push(text))
    bar.show('indexing', { done: 50, total: 200 })
    bar.show('indexing', { done: 200, total: 200 })
    bar.clear()
    bar.clear()
    expect(written).toEqual([
      `${erased}indexing ${'█'.repeat(6)}${'░'.repeat(18)} 25 % (50 of 200)\r`, `${erased}indexing ${'█'.repeat(24)} 100 % (200 of 200)\r`, erased,
    ])
  })

  it('gives way to a line of the log', () => {
    const written: string[] = []
    const logger = createConsoleLogger({ progress: true, write: (text) => void written.push(text) })
    logger.progress?.('indexing', { done: 1, total: 2 })
    logger.warn('careful')
    logger.progress?.('indexing')
    expect(written.slice(1)).toEqual([erased, 'heed warn: careful\n'])
  })

  it('is drawn by default on a terminal alone', () => {
    expect(createConsoleLogger({ write: () => {} }).progress).toBeUndefined()
    expect(createConsoleLogger({ json: true }).progress).toBeUndefined()
    expect(createConsoleLogger({ level: 'silent' }).progress).toBeUndefined()
  })
})
