import type { MessageRow } from '../../message/row.ts'
import type { ContextBlock } from '../../run/loop/run-setup.ts'
import { escapeText } from '../../signals/xml.ts'
import type { WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryValue } from '../../store/contract/threads.ts'
import { patchBetween } from '../../store/contract/working-memory.ts'

/** What a context row of working memory says of itself. */
interface Shown {
  scope: WorkingMemoryOf['scope']
  mode: 'snapshot' | 'delta'
  value: WorkingMemoryValue
}

/**
 * What the model has to be told of its working memory, given what it sees already: all of it when it sees none, a delta when it
 * changed, nothing otherwise. A pure function of rows and value, so that it is the same after a restart.
 */
export function workingMemoryBlock(rows: readonly MessageRow[], present: WorkingMemoryRow | null, scope: Shown['scope']): ContextBlock | undefined {
  const blocks = rows.flatMap((row) => shownIn(row, scope) ?? [])
  const last = blocks.at(-1)
  const whole = blocks.some(({ mode }) => mode === 'snapshot')
  const value = present?.value ?? (last && '')
  if (value === undefined || (!last && isEmpty(value))) return undefined
  if (last && whole && same(last.value, value)) return undefined
  const snapshot = rendered('snapshot', written(value))
  const delta = last && whole ? deltaBetween(last.value, value) : undefined
  const shorter = delta === undefined ? undefined : rendered('delta', delta)
  const mode = shorter !== undefined && shorter.length < snapshot.length ? 'delta' : 'snapshot'
  const shown: Shown = { scope, mode, value }
  return { text: mode === 'delta' && shorter !== undefined ? shorter : snapshot, metadata: { workingMemory: { ...shown } } }
}

function shownIn({ role, content }: MessageRow, scope: Shown['scope']): Shown | undefined {
  const shown = role === 'context' ? (content.metadata?.workingMemory as Shown | undefined) : undefined
  return shown?.scope === scope ? shown : undefined
}

function rendered(mode: Shown['mode'], text: string): string {
  return `<working-memory${mode === 'delta' ? ' mode="delta"' : ''}>\n${escapeText(text)}\n</working-memory>`
}

function written(value: WorkingMemoryValue): string {
  if (isEmpty(value)) return '(empty)'
  return typeof value === 'string' ? value.trim() : JSON.stringify(value)
}

function deltaBetween(before: WorkingMemoryValue, after: WorkingMemoryValue): string | undefined {
  if (isEmpty(before) || isEmpty(after)) return undefined
  if (typeof before === 'string' && typeof after === 'string') return linesBetween(before.trim().split('\n'), after.trim().split('\n'))
  if (typeof before === 'string' || typeof after === 'string') return undefined
  return JSON.stringify(patchBetween(before, after))
}

/** The lines that went and came, after the line before them. */
function linesBetween(before: readonly string[], after: readonly string[]): string {
  const least = Math.min(before.length, after.length)
  let start = 0
  while (start < least && before[start] === after[start]) start++
  let end = 0
  while (end < least - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const context = start > 0 ? [`  ${before[start - 1]}`] : []
  const went = before.slice(start, before.length - end).map((line) => `- ${line}`)
  const came = after.slice(start, after.length - end).map((line) => `+ ${line}`)
  return [...context, ...went, ...came].join('\n')
}

function isEmpty(value: WorkingMemoryValue): boolean {
  return typeof value === 'string' ? value.trim() === '' : Object.keys(value).length === 0
}

function same(a: WorkingMemoryValue, b: WorkingMemoryValue): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
