import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { promptOf } from '../../prompt/from-rows.ts'
import { joinRows } from '../join.ts'
import type { MessageSource } from './list.ts'
import { MessageList } from './list.ts'
import type { Message, MessagePart, ToolInvocation } from '../message.ts'
import type { MessageRow, RowRole } from '../row.ts'

const at = new Date(0)
const textPart = (text: string): MessagePart => ({ type: 'text', text })
const message = (id: string, text: string, role: Message['role'] = 'user'): Message =>
  ({ id, role, createdAt: at, content: { format: 2, parts: [textPart(text)] } })
const row = (id: string, role: RowRole, messageId: string, parts: MessagePart[]): MessageRow =>
  ({ id, messageId, role, createdAt: at, content: { format: 2, parts } })
const call = (id: string, rest: Partial<ToolInvocation> = {}): MessagePart =>
  ({ type: 'tool-invocation', toolInvocation: { toolCallId: id, toolName: 'look', args: {}, state: 'call', ...rest } })
const summary = (part: MessagePart) => (part.type === 'text' ? part.text : part.type)
const summaries = (messages: Message[]) => messages.map(({ id, content }) => `${id}:${content.parts.map(summary).join('+')}`)

const rowsOfRun = [
  row('u', 'user', 'u', [textPart('go')]),
  row('a1', 'assistant', 'm', [call('1')]),
  row('t1', 'tool', 'm', [call('1', { state: 'result', result: 1 })]),
  row('c1', 'context', 'c1', [textPart('recalled')]),
  row('a2', 'assistant', 'm', [textPart('done')]),
]

describe('a list of messages', () => {
  it('takes messages in every form', () => {
    const list = new MessageList()
      .add('text', 'input')
      .add(message('m', 'stored'), 'memory')
      .add([message('n', 'one'), message('o', 'two')], 'memory')
      .add(row('r', 'user', 'r', [textPart('row')]), 'memory')
      .add({ id: 'ui', role: 'user', parts: [{ type: 'text', text: 'ui' }] }, 'input')
      .add([{ role: 'user', content: 'model' }, { role: 'assistant', content: [{ type: 'text', text: 'parts' }] }], 'context')
      .add([], 'input')
    expect(list.get.all.db().map(({ content }) => content.parts.at(-1))).toEqual([
      'text',
      'stored',
      'one',
      'two',
      'row',
      'ui',
      'model',
      'parts',
    ].map(textPart))
    expect(summaries(list.get.remembered.db())).toEqual(['m:stored', 'n:one', 'o:two', 'r:row'])
    expect(list.get.input.db()).toHaveLength(2)
    expect(list.get.response.db()).toEqual([])
    expect(list.rows('context')).toHaveLength(2)
  })

  it('returns the same object that was added', () => {
    const given = message('m', 'x', 'assistant')
    expect(new MessageList().add(given, 'memory').get.all.db()[0]).toBe(given)
  })

  it('rejects an invalid message', () => {
    expect(() => new MessageList().add({ role: 'robot', content: 'x' } as never, 'input')).toThrow(
      expect.objectContaining({ code: 'invalid_message' }),
    )
  })

  it('orders by insertion and never by time', () => {
    const later = { ...message('b', 'first'), createdAt: new Date(9e12) }
    expect(summaries(new MessageList().add([later, message('a', 'second')], 'memory').get.all.db())).toEqual(['b:first', 'a:second'])
  })

  it('joins rows as they are added, of any source', () => {
    const list = MessageList.from(rowsOfRun.slice(0, 3))
    expect(summaries(list.get.all.db())).toEqual(['u:go', 'm:step-start+tool-invocation'])
    list.add(rowsOfRun.slice(3), 'response')
    expect(list.get.all.db()).toEqual(joinRows(rowsOfRun))
    expect(list.rows()).toEqual(rowsOfRun)
    expect(list.rows('response')).toEqual(rowsOfRun.slice(3))
    expect(summaries(list.get.response.db())).toEqual(['m:step-start+tool-invocation+step-start+done'])
    expect(list.get.all.prompt()).toEqual(promptOf(rowsOfRun))
  })

  it('replaces a row with the same id in place', () => {
    const list = MessageList.from(rowsOfRun).add(row('a1', 'assistant', 'm', [textPart('changed'), call('1')]), 'memory')
    expect(list.rows().map(({ id }) => id)).toEqual(['u', 'a1', 't1', 'c1', 'a2'])
    expect(summaries(list.get.all.db())[1]).toBe('m:step-start+changed+tool-invocation+step-start+done')
    list.add(
      row('u', 'user', 'u', [textPart('again')]),
      'memory',
    ).add(message('u', 'whole'), 'memory').add(row('u', 'user', 'u', [textPart('row')]), 'memory')
    expect(summaries(list.get.all.db())[0]).toBe('u:row')
    expect(list.rows()).toHaveLength(5)
  })

  it('replaces a message in place, around context rows', () => {
    const [, joined] = joinRows(rowsOfRun)
    const changed: Message = {
      ...joined!,
      content: { ...joined!.content, parts: joined!.content.parts.map(part => (part.type === 'text' ? textPart('changed') : part)) },
    }
    const list = MessageList.from(rowsOfRun).add(changed, 'memory')
    expect(list.rows().map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'context', 'assistant'])
    expect(list.get.all.db()[1]).toBe(changed)
    const copy = MessageList.from(rowsOfRun).add({ ...joined! }, 'memory')
    expect(copy.get.all.prompt()).toEqual(promptOf(rowsOfRun))
  })

  it('finds the row of a message that was added whole', () => {
    const list = new MessageList().add(message('u', 'whole'), 'input').add(row('u', 'user', 'u', [textPart('row')]), 'memory')
    expect(list.rows()).toHaveLength(1)
    expect(summaries(list.get.input.db())).toEqual(['u:row'])
  })

  it('keeps ids and runs of the rows of a changed message, and the rows of steps that didn’t change', () => {
    const rows = rowsOfRun.map((plain, seq) => ({ ...plain, runId: 'run', seq }))
    const list = MessageList.from(rows)
    const [user, joined] = list.get.all.db()
    const parts = joined!.content.parts.map(part => (part.type === 'text' ? textPart('changed') : part))
    list.replace([user!, { ...joined!, content: { ...joined!.content, parts } }], 'all')
    expect(list.rows()).toEqual([...rows.slice(0, 4), { ...rows[4], content: { format: 2, parts: [textPart('changed')] } }])
    expect(list.rows()[1]).toBe(rows[1])
  })

  it('keeps the parts of old rows, also of unknown types', () => {
    const old = row('o', 'user', 'o', [{ type: 'hologram' } as never, textPart('x')])
    const list = new MessageList().add(old, 'memory')
    expect(list.rows()[0]).toBe(old)
    list.replace(list.get.all.db().map(kept => ({ ...kept })), 'all')
    expect(list.get.all.db()[0]?.content.parts).toEqual(old.content.parts)
  })

  it('keeps the source of a message that is added from memory too', () => {
    const list = new MessageList().add(message('m', 'x'), 'input').add(message('m', 'x'), 'memory')
    expect(list.get.input.db()).toHaveLength(1)
    expect(new MessageList().add(message('m', 'x'), 'memory').add(message('m', 'y'), 'input').get.input.db()).toHaveLength(1)
  })

  it('removes by id, with all rows, and returns the removed messages', () => {
    const list = MessageList.from(rowsOfRun)
    expect(summaries(list.removeByIds(['m', 'nobody']))).toEqual(['m:step-start+tool-invocation+step-start+done'])
    expect(list.rows().map(({ id }) => id)).toEqual(['u', 'c1'])
    list.add(rowsOfRun[1]!, 'memory')
    expect(summaries(list.get.all.db())).toEqual(['u:go', 'm:step-start+tool-invocation'])
    expect(list.rows().map(({ id }) => id)).toEqual(['u', 'c1', 'a1'])
  })

  it('takes an array from a processor: missing removed, known replaced, new at the end', () => {
    const list = MessageList.from(rowsOfRun).add([message('i1', 'one'), message('i2', 'two')], 'input')
    list.replace([message('new', 'three'), message('i2', 'TWO'), message('u', 'GO')], 'input')
    expect(summaries(list.get.all.db())).toEqual(['u:GO', 'm:step-start+tool-invocation+step-start+done', 'i2:TWO', 'new:three'])
    expect(summaries(list.get.input.db())).toEqual(['i2:TWO', 'new:three'])
    expect(summaries(list.get.remembered.db())).toEqual(['u:GO', 'm:step-start+tool-invocation+step-start+done'])
    list.replace(list.get.all.db().filter(({ id }) => id !== 'u'), 'all')
    expect(summaries(list.get.all.db())).toEqual(['m:step-start+tool-invocation+step-start+done', 'i2:TWO', 'new:three'])
  })

  it('keeps the rows of unchanged messages, so that their prompt keeps its bytes', () => {
    const list = MessageList.from(rowsOfRun)
    list.replace(list.get.all.db(), 'all')
    expect(list.rows().every((kept, index) => kept === rowsOfRun[index])).toBe(true)
  })

  it('puts instructions before all messages, each once per tag', () => {
    const list = new MessageList().add('hi', 'input').addSystem('a').addSystem(['a', 'b']).addSystem('a', 'memory')
    expect(list.systemMessages('memory')).toEqual([{ role: 'system', content: 'a' }])
    expect(list.get.all.prompt().map(({ content }) => content)).toEqual(['a', 'b', 'a', [textPart('hi')]])
    expect(list.get.input.prompt()).toHaveLength(1)
  })

  it('returns messages for user interfaces, and closes open calls in the prompt', () => {
    const list = MessageList.from(rowsOfRun.slice(0, 2)).add('well?', 'input')
    expect(list.get.all.ui().map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(list.get.all.prompt().map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  })

  it('returns arrays that callers may change', () => {
    const list = new MessageList().add('x', 'input')
    list.get.all.db().pop()
    expect(list.get.all.db()).toHaveLength(1)
  })
})

type Operation =
  | { do: 'add'; id: string; text: string; source: MessageSource }
  | { do: 'remove'; id: string }
  | { do: 'replace'; ids: string[]; source: MessageSource | 'all' }
const id = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const source = fc.constantFrom<MessageSource>('memory', 'input', 'response', 'context')
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ do: fc.constant('add' as const), id, text: fc.string({ maxLength: 3 }), source }),
  fc.record({ do: fc.constant('remove' as const), id }),
  fc.record({
    do: fc.constant('replace' as const), ids: fc.uniqueArray(id), source: fc.oneof(source, fc.constant('all' as const)),
  }),
)

describe('any sequence of operations', () => {
  it('has the result of the same operations on a plain array', () => {
    fc.assert(fc.property(fc.array(operation, { maxLength: 40 }), operations => {
      const list = new MessageList()
      let plain: Array<{ id: string; text: string; source: MessageSource }> = []
      const put = (id: string, text: string, source: MessageSource) => {
        const known = plain.find(item => item.id === id)
        if (!known) plain.push({ id, text, source })
        else Object.assign(known, { text, ...(source !== 'memory' && { source }) })
      }
      for (const op of operations) {
        if (op.do === 'add') {
          list.add(message(op.id, op.text), op.source)
          put(op.id, op.text, op.source)
        } else if (op.do === 'remove') {
          list.removeByIds([op.id])
          plain = plain.filter(item => item.id !== op.id)
        } else {
          list.replace(op.ids.map(id => message(id, 'replaced')), op.source)
          plain = plain.filter(item => op.ids.includes(item.id) || (op.source !== 'all' && item.source !== op.source))
          const fresh = op.source === 'all' ? 'input' : op.source
          for (const id of op.ids) put(id, 'replaced', plain.find(item => item.id === id)?.source ?? fresh)
        }
      }
      expect(summaries(list.get.all.db())).toEqual(plain.map(item => `${item.id}:${item.text}`))
      const input = plain.filter(item => item.source === 'input')
      expect(summaries(list.get.input.db())).toEqual(input.map(item => `${item.id}:${item.text}`))
      expect(list.rows().map(({ messageId }) => messageId)).toEqual(plain.map(item => item.id))
    }))
  })
})

describe('the work of a list', () => {
  /** Rows that count how often anything of them is read. */
  function counted(turns: number, rowsOf = turnRows): { rows: MessageRow[]; reads: () => number } {
    let reads = 0
    const rows = Array.from({ length: turns }, (_, index) => rowsOf(index)).flat().map(plain => new Proxy(plain, {
      get(target, key, receiver) {
        reads++
        return Reflect.get(target, key, receiver) as unknown
      },
    }))
    return { rows, reads: () => reads }
  }

  function turnRows(index: number): MessageRow[] {
    return [
      row(`u${index}`, 'user', `u${index}`, [textPart('go')]),
      row(`a${index}`, 'assistant', `m${index}`, [call('1')]),
      row(`t${index}`, 'tool', `m${index}`, [call('1', { state: 'result', result: 1 })]),
      row(`b${index}`, 'assistant', `m${index}`, [textPart('done')]),
    ]
  }

  function work(turns: number): number {
    const { rows, reads } = counted(turns)
    const list = new MessageList()
    for (const one of rows) list.add(one, 'memory')
    list.get.all.db()
    list.get.all.ui()
    list.get.all.prompt()
    list.replace(list.get.all.db(), 'all')
    list.removeByIds(rows.filter((_, index) => index % 8 === 0).map(({ messageId }) => messageId))
    list.rows()
    return reads()
  }

  it('is linear in the messages, for adding one by one and for reading', () => {
    const [small, large] = [work(50), work(400)]
    expect(small).toBeGreaterThan(0)
    expect(large / small).toBeLessThan(8.2)
  })

  it('is done once: unchanged messages aren’t read again', () => {
    const { rows, reads } = counted(100)
    const list = MessageList.from(rows)
    const first = list.get.all.db()
    const before = reads()
    expect(list.get.all.db()).toEqual(first)
    expect(reads()).toBe(before)
    list.add('one more', 'input')
    expect(list.get.all.db().slice(0, -1).every((same, index) => same === first[index])).toBe(true)
    expect(reads()).toBe(before)
  })

  it('is linear in the rows of one long message', () => {
    const long = (steps: number) => {
      const { rows, reads } = counted(steps, index => [
        row(`a${index}`, 'assistant', 'm', [call(`${index}`)]),
        row(`t${index}`, 'tool', 'm', [call(`${index}`, { state: 'result', result: 1 })]),
      ])
      const list = new MessageList()
      for (const one of rows) list.add(one, 'response')
      for (const one of rows) list.add(one, 'response')
      expect(list.get.all.db()[0]?.content.parts).toHaveLength(2 * steps)
      expect(list.rows('response')).toHaveLength(2 * steps)
      list.get.response.prompt()
      return reads()
    }
    expect(long(1600) / long(200)).toBeLessThan(8.2)
  })
})
