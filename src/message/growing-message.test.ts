import { describe, expect, it } from 'vitest'
import { Chance } from '../store/conformance/fixture.ts'
import { joinRows } from './join.ts'
import { MessageList } from './list/list.ts'
import type { MessagePart } from './message.ts'
import type { MessageRow } from './row.ts'

function row(id: string, role: MessageRow['role'], parts: MessagePart[], more: Partial<MessageRow['content']> = {}): MessageRow {
  return { id, messageId: 'answer', role, createdAt: new Date(0), content: { format: 2, parts, ...more } }
}

/** The rows of one answer: steps with calls, whose results come together, late, or not at all. */
function answer(chance: Chance, steps: number): MessageRow[] {
  const rows: MessageRow[] = []
  let open: string[] = []
  const call = (toolCallId: string): MessagePart => ({ type: 'tool-invocation', toolInvocation: { toolCallId, toolName: 'look', args: {}, state: 'call' } })
  const result = (toolCallId: string): MessagePart => ({ type: 'tool-invocation', toolInvocation: { toolCallId, toolName: 'look', args: {}, state: 'result', result: 1 } })
  for (let step = 0; step < steps; step++) {
    const calls = Array.from({ length: chance.below(3) }, (_, index) => `${step}.${index}`)
    open.push(...calls)
    const more = chance.below(3) === 0 ? { metadata: { [`step-${step}`]: true }, providerMetadata: { some: { step } } } : {}
    const files = chance.below(5) === 0 ? { experimental_attachments: [{ url: `https://files.example/${step}` }] } : {}
    rows.push(row(`a${step}`, 'assistant', [{ type: 'text', text: `step ${step}` }, ...calls.map(call)], { ...more, ...files }))
    const done = open.filter(() => chance.below(4) > 0)
    if (done.length > 0) rows.push(row(`t${step}`, 'tool', done.map(result)))
    open = open.filter((id) => !done.includes(id))
  }
  return rows
}

describe('a message that grows row by row', () => {
  it('equals the joined rows after every row, and messages read earlier don’t change', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const rows = answer(new Chance(seed), 12)
      const list = new MessageList()
      const read: Array<{ message: unknown; text: string }> = []
      rows.forEach((one, index) => {
        list.add(one, 'response')
        const [message] = list.get.all.db()
        expect(message).toEqual(joinRows(rows.slice(0, index + 1))[0])
        read.push({ message, text: JSON.stringify(message) })
      })
      for (const { message, text } of read) expect(JSON.stringify(message)).toBe(text)
    }
  })

  it('contains a replaced row, and continues to grow', () => {
    const rows = answer(new Chance(7), 4)
    const list = new MessageList()
    for (const one of rows) list.add(one, 'response')
    list.get.all.db()
    const other = row('a1', 'assistant', [{ type: 'text', text: 'other words' }])
    const last = row('last', 'assistant', [{ type: 'text', text: 'last words' }])
    list.add(other, 'response').add(last, 'response')
    expect(list.get.all.db()).toEqual(joinRows([...rows.map((one) => (one.id === 'a1' ? other : one)), last]))
  })
})
