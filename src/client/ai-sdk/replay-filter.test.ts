import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { UIPart } from '../../message/ui/ui-message.ts'
import { ReplayFilter } from './replay-filter.ts'
import { chunksOfPart, type UIChunk } from './conversion.ts'

/** The parts that a page makes of a stream. Throws for a delta or end of a text that is not open. */
function page(chunks: readonly UIChunk[]): string[] {
  const parts: Array<{ type: string; text: string }> = []
  const open = new Map<string, { text: string }>()
  for (const chunk of chunks) {
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      const part = { type: chunk.type.slice(0, -'-start'.length), text: '' }
      parts.push(part)
      open.set(chunk.id, part)
    } else if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') {
      const part = open.get(chunk.id)
      if (!part) throw new Error(`a delta of '${chunk.id}', which is not open`)
      part.text += chunk.delta
    } else if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') {
      if (!open.delete(chunk.id)) throw new Error(`an end of '${chunk.id}', which is not open`)
    } else if (chunk.type === 'finish-step') open.clear()
    else if ('toolCallId' in chunk) parts.push({ type: chunk.type, text: chunk.toolCallId })
    else parts.push({ type: chunk.type, text: '' })
  }
  return parts.map(({ type, text }) => `${type}: ${text}`)
}

const text = (id: string, ...deltas: string[]): UIChunk[] => [{ type: 'text-start', id }, ...deltas.map((delta): UIChunk => ({ type: 'text-delta', id, delta })), { type: 'text-end', id }]
const step = (...chunks: UIChunk[]): UIChunk[] => [{ type: 'start-step' }, ...chunks, { type: 'finish-step' }]
const call = (toolCallId: string): UIChunk[] => [{ type: 'tool-input-start', toolCallId, toolName: 'look' }, { type: 'tool-input-available', toolCallId, toolName: 'look', input: {} }]
const result = (toolCallId: string): UIChunk => ({ type: 'tool-output-available', toolCallId, output: 'ok' })
const accepted = (filter: ReplayFilter, chunks: readonly UIChunk[]) => chunks.flatMap((chunk) => filter.accept(chunk))

/** Steps of a model: reasoning, texts, calls and their results. */
const answers = fc.array(
  fc.record({ thinks: fc.boolean(), words: fc.array(fc.string({ minLength: 1, maxLength: 5 }), { maxLength: 4 }), calls: fc.nat({ max: 2 }), knows: fc.boolean() }),
  { minLength: 1, maxLength: 3 },
).map((steps) => steps.flatMap(({ thinks, words, calls, knows }, index) => {
  const ids = Array.from({ length: calls }, (_, nth) => `call-${index}-${nth}`)
  return step(
    ...(thinks ? [{ type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'Hm.' }, { type: 'reasoning-end', id: 'r' }] as UIChunk[] : []),
    ...(knows ? [{ type: 'source-url', sourceId: `s-${index}`, url: 'https://a.example' }] as UIChunk[] : []),
    ...(words.length > 0 ? text('t', ...words) : []),
    ...ids.flatMap(call), ...ids.map(result),
  )
}))

describe('an answer that is replayed', () => {
  it('[U1.6] repeats no part and omits none, wherever the first streams ended', () => {
    fc.assert(fc.property(answers, fc.nat(), fc.nat(), (answer, one, other) => {
      const filter = new ReplayFilter()
      const first = accepted(filter, answer.slice(0, one % (answer.length + 1)))
      filter.restart()
      const second = accepted(filter, answer.slice(0, other % (answer.length + 1)))
      filter.restart()
      expect(page([...first, ...second, ...accepted(filter, answer)])).toEqual(page(answer))
    }))
  })

  it('[U1.6] joins the parts from history with the chunks that follow, although their boundaries differ', () => {
    const filter = new ReplayFilter()
    const first = accepted(filter, [{ type: 'start', messageId: 'a' }, ...step(...text('t', 'I ', 'look.'), ...call('c1')).slice(0, -1)])
    filter.restart()
    const parts: UIPart[] = [{ type: 'step-start' }, { type: 'text', text: 'I look.' }, { type: 'tool-look', toolCallId: 'c1', input: {}, state: 'output-available', output: 'ok' }, { type: 'step-start' }, { type: 'text', text: 'Seen' }]
    const second = accepted(filter, [{ type: 'start', messageId: 'b' }, ...parts.flatMap((part, index) => chunksOfPart(part, `a/${index}`)), ...step(...text('t', 'And ', 'more.'))])
    expect([...first, ...second].filter(({ type }) => type === 'start')).toEqual([{ type: 'start', messageId: 'a' }])
    expect(page([...first, ...second].filter(({ type }) => type !== 'start'))).toEqual([
      'start-step: ', 'text: I look.', 'tool-input-start: c1', 'tool-input-available: c1', 'tool-output-available: c1', 'start-step: ', 'text: Seen', 'start-step: ', 'text: And more.',
    ])
  })

  it('[U1.6] continues a text in its part, and adds a part for a text that differs', () => {
    const begun = [{ type: 'start-step' }, { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Once upon' }] as UIChunk[]
    const same = new ReplayFilter()
    const first = accepted(same, begun)
    same.restart()
    expect(page([...first, ...accepted(same, step(...text('u', 'On', 'ce upon a ', 'time.')))])).toEqual(['start-step: ', 'text: Once upon a time.'])
    const other = new ReplayFilter()
    const before = accepted(other, begun)
    other.restart()
    expect(page([...before, ...accepted(other, step(...text('t', 'Once', ', long ago.')))])).toEqual(['start-step: ', 'text: Once upon', 'text: Once, long ago.'])
  })

  it('[U1.6] continues after the parts that the page has', () => {
    const filter = new ReplayFilter([{ type: 'step-start' }, { type: 'tool-pay', toolCallId: 'c1', input: {}, state: 'approval-requested', approval: { id: 'c1' } }])
    filter.restart()
    const parts: UIPart[] = [{ type: 'step-start' }, { type: 'tool-pay', toolCallId: 'c1', input: {}, state: 'output-available', output: 'paid' }]
    expect(accepted(filter, [...parts.flatMap((part, index) => chunksOfPart(part, `a/${index}`)), ...step(...text('t', 'Paid.'))])).toEqual([
      { type: 'tool-output-available', toolCallId: 'c1', output: 'paid' }, ...step(...text('t', 'Paid.')),
    ])
  })
})
