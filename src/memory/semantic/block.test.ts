import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import { estimateTokens } from '../../prompt/tokens.ts'
import { splitPassages } from '../../recall/text/passages.ts'
import { recallBlock, type RecalledPassage } from './block.ts'

const reasons = {
  words: 0.98765,
  wordsOfPair: 0,
  meaning: 0.5,
  meaningOfPair: 0,
  previous: 0,
  next: 0,
  thread: 1,
  wordsOfThread: 0,
  length: 0,
  time: 0,
  question: 0,
}
const message = (id: string, text: string): Message => ({
  id,
  role: 'user',
  createdAt: new Date(1_700_000_000_000),
  content: { format: 2, parts: [{ type: 'text', text }] },
})
const one = (text: string, found: string): RecalledPassage => ({
  threadId: 't',
  title: '',
  messages: [{ message: message('a', text), seq: 1, hit: { score: 1, reasons, text: found } }],
})

const word = fc.constantFrom(
  'x ',
  'hello world ',
  '日本語テキスト',
  '😀😀',
  'a'.repeat(300),
  '<recalled-messages>&<',
  'The hound barked. ',
  '\n',
  ' ',
  '\u0301',
  'ก็',
  '{"a":[1,2]}',
)
const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(''))
const passages: fc.Arbitrary<RecalledPassage[]> = fc
  .array(
    fc.record({
      title: fc.oneof(fc.constant(''), text),
      messages: fc.array(
        fc.record({ text, score: fc.option(fc.double({ min: 0, max: 1, noNaN: true })), nth: fc.nat(20), stale: fc.boolean() }),
        { maxLength: 5 },
      ),
    }),
    { maxLength: 3 },
  )
  .map((list) =>
    list.map(({ title, messages }, at) => ({
      threadId: `t${at}`,
      title,
      messages: messages.map(({ text: words, score, nth, stale }, seq) => ({
        message: message(`m${seq}`, words),
        seq,
        ...(score !== null && {
          hit: {
            score,
            reasons,
            text: stale ? 'its former text' : (splitPassages(words).at(nth % Math.max(1, splitPassages(words).length)) ?? ''),
          },
        }),
      })),
    })),
  )

describe('a recall block', () => {
  it('[K2.11] is within its tokens and well-formed, for any passages', () => {
    fc.assert(fc.property(passages, fc.oneof(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 1, max: 3_000 })), (found, maxTokens) => {
      const block = recallBlock(found, { threadId: 't0', question: 'hound 日本語 hello', maxTokens })
      if (!block) return
      expect(estimateTokens(block.text)).toBeLessThanOrEqual(maxTokens)
      expect(block.text.isWellFormed()).toBe(true)
      expect(block.text).not.toContain('its former text')
    }), { numRuns: 400 })
  })

  it('[K2.20] has one line of day and thread for the passages of one day of a thread', () => {
    const at = (id: string, threadId: string, text: string, createdAt: number): RecalledPassage => {
      const [found] = one(text, text).messages
      if (!found) throw new Error('no message')
      return { threadId, title: 'Dogs', messages: [{ ...found, message: { ...found.message, id, createdAt: new Date(createdAt) } }] }
    }
    const noon = Date.parse('2031-05-03T12:00:00Z')
    const found = [
      at('a', 't1', 'The hound barked.', noon), at('b', 't1', 'The hound ran.', noon + 60_000), at('c', 't2', 'Another hound.', noon + 120_000),
      at('d', 't1', 'A hound again.', noon + 180_000), at('e', 't1', 'The next day, a hound.', noon + 86_400_000),
    ]
    expect(recallBlock(found, { threadId: 'x', question: 'hound', maxTokens: 500 })?.text.split('\n').slice(2, -1)).toEqual([
      '--- 2031-05-03 · Dogs', 'user: The hound barked.', '…', 'user: The hound ran.',
      '--- 2031-05-03 · Dogs', 'user: Another hound.',
      '--- 2031-05-03 · Dogs', 'user: A hound again.',
      '--- 2031-05-04 · Dogs', 'user: The next day, a hound.',
    ])
  })

  it('[K2.13] has the score and the reasons of each hit', () => {
    const messages = [{ message: message('b', 'Before.'), seq: 0 }, ...one('The hound barked.', 'The hound barked.').messages]
    expect(
      recallBlock([{ threadId: 't', title: '', messages }], { threadId: 'x', question: 'hound', maxTokens: 500 })?.metadata.recall,
    ).toEqual([
      {
        threadId: 't',
        score: 1,
        messages: ['b', 'a'],
        hits: [{ messageId: 'a', score: 1, reasons: { words: 0.988, meaning: 0.5, thread: 1 } }],
      },
    ])
  })

  it('[K2.3] leaves out a message that was emptied after the search, whatever the tokens', () => {
    for (let maxTokens = 1; maxTokens <= 60; maxTokens += 1)
      expect(recallBlock([one(' ', 'the hound')], { threadId: 'x', question: 'hound', maxTokens })).toBeUndefined()
  })

  it('[K2.3] quotes nothing of the former text of a long message that was changed', () => {
    const block = recallBlock([one('The cat sleeps. '.repeat(200), 'the hound is called Ada')], {
      threadId: 'x',
      question: 'hound',
      maxTokens: 500,
    })
    expect(block?.text).toContain('The cat sleeps.')
    expect(block?.text).not.toContain('Ada')
  })
})
