import { describe, expect, it } from 'vitest'
import type { Chunk } from '../message/chunk.ts'
import { ThreadView } from './render.ts'

const envelope = { runId: 'run', from: 'AGENT' } as const
const begin: Chunk = { ...envelope, type: 'text-start', payload: { id: 'text' } }
const end: Chunk = { ...envelope, type: 'text-end', payload: { id: 'text' } }
const delta = (text: string): Chunk => ({ ...envelope, type: 'text-delta', payload: { id: 'text', text } })

function shown(width: number, play: (view: ThreadView) => void): string[] {
  let output = ''
  play(new ThreadView((text) => void (output += text), width))
  return output.split('\n')
}

describe('a thread in a terminal', () => {
  it('breaks lines between words and keeps them in their column', () => {
    const lines = shown(24, (view) => {
      view.show(begin)
      for (const text of ['All ', 'tests ', 'pass', ', ', 'so it ', 'goes.\nNow.']) view.show(delta(text))
      view.show(end)
    })
    expect(lines).toEqual(['   agent  All tests pass,', '          so it goes.', '          Now.', ''])
  })

  it('writes other chunks on lines of their own while the text of an agent is streamed', () => {
    const lines = shown(80, (view) => {
      view.show(begin)
      view.show(delta('One '))
      view.line('you', 'you', 'Wait.', '(sent now)')
      view.show(delta('moment.'))
      view.show(end)
    })
    expect(lines).toEqual(['   agent  One', '     you  Wait.  (sent now)', '   agent  moment.', ''])
  })
})
