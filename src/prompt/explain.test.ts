import { describe, expect, it } from 'vitest'
import type { MessagePart } from '../message/message.ts'
import type { MessageRow, RowRole } from '../message/row.ts'
import { explainPrompt } from './explain.ts'
import { systemMessages } from './system.ts'
import { estimateTokens, FILE_TOKENS } from './tokens.ts'

const row = (id: string, role: RowRole, parts: MessagePart[], rest: Partial<MessageRow> = {}): MessageRow =>
  ({ id, messageId: id, role, createdAt: new Date(0), content: { format: 2, parts }, ...rest })
const textPart = (text: string): MessagePart => ({ type: 'text', text })
const call: MessagePart = {
  type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'look', args: { q: 1 }, state: 'call' },
}
const result: MessagePart = {
  type: 'tool-invocation',
  toolInvocation: { toolCallId: 'c', toolName: 'look', args: null, state: 'result', result: 'found' },
}
const notification = row('n', 'signal', [textPart('CI failed')], { type: 'notification' })
const rows = [
  row('u1', 'user', [textPart('hello')]),
  row('a1', 'assistant', [textPart('hi there')]),
  notification,
  row('c1', 'context', [textPart('recalled')]),
  row('u2', 'user', [textPart('look at\n this'), { type: 'file', data: 'AAEC', mimeType: 'image/png' }], { runId: 'r' }),
  row('a2', 'assistant', [call], { runId: 'r' }),
  row('t2', 'tool', [result], { runId: 'r', messageId: 'a2' }),
]
const tools = [{ type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const } }]
const system = systemMessages('Be brief.')

describe('an explained prompt', () => {
  it('names the source of each part, in the order of the prompt', () => {
    const { parts } = explainPrompt({ system, rows, tools, runId: 'r' })
    expect(parts.map(({ source, role, messageId, preview }) => [source, role, messageId, preview])).toEqual([
      ['tools', 'system', undefined, 'look'],
      ['instructions', 'system', undefined, 'Be brief.'],
      ['history', 'user', 'u1', 'hello'],
      ['history', 'assistant', 'a1', 'hi there'],
      ['signal', 'user', 'n', '<notification>CI failed</notification>'],
      ['context', 'user', 'c1', 'recalled'],
      ['input', 'user', 'u2', 'look at this [1 file]'],
      ['response', 'assistant', 'a2', 'look({"q":1})'],
      ['response', 'tool', 'a2', 'found'],
    ])
  })

  it('counts the rows after the last response as input when no run is named', () => {
    const { parts } = explainPrompt({ system: [], rows: [...rows, row('u3', 'user', [textPart('and now?')])] })
    expect(parts.filter(({ source }) => source === 'input').map(({ messageId }) => messageId)).toEqual(['u3'])
  })

  it('adds up tokens and bytes', () => {
    const { parts, tokens, bytes } = explainPrompt({ system, rows, tools })
    expect(tokens).toBe(parts.reduce((sum, part) => sum + part.tokens, 0))
    expect(bytes).toBe(parts.reduce((sum, part) => sum + part.bytes, 0))
    expect(parts.find(({ messageId }) => messageId === 'u2')?.tokens).toBe(FILE_TOKENS + estimateTokens('look at\n this'))
  })

  it('[P1.2] has the whole previous prompt as its prefix after rows were appended', () => {
    const { fingerprints: previous } = explainPrompt({ system, rows: rows.slice(0, 5), tools })
    const { prefix } = explainPrompt({ system, rows, tools, previous })
    expect(prefix).toMatchObject({ messages: previous.length, ratio: 1 })
    const changed = explainPrompt({ system: systemMessages('Be long.'), rows, tools, previous })
    expect(changed.prefix.messages).toBe(1)
    expect(changed.prefix.ratio).toBeLessThan(0.5)
  })
})

describe('estimated tokens', () => {
  it('depend on the script', () => {
    expect([
      estimateTokens(''),
      estimateTokens('four'),
      estimateTokens('fives'),
      estimateTokens('жук!'),
      estimateTokens('漢字'),
    ]).toEqual([0, 1, 2, 2, 2])
  })
})
