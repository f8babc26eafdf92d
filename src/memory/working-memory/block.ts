import type { MessageRow } from '../../message/row.ts'
import type { ContextBlock } from '../../run/loop/run-contract.ts'
import { escapeText } from '../../signals/xml.ts'
import type { WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryValue } from '../../store/contract/threads.ts'
import { mergePatchBetween } from '../../store/contract/working-memory.ts'

/** The metadata of a context row of working memory. */
interface ShownValue {
  scope: WorkingMemoryOf['scope']
  mode: 'snapshot' | 'delta'
  value: WorkingMemoryValue
}

/**
 * The context row that shows working memory to the model, given the rows of the prompt: the whole value when they don't have it, a delta
 * when it changed, undefined otherwise. A pure function of rows and value, so that it is the same after a restart.
 */
export function workingMemoryBlock(
  rows: readonly MessageRow[],
  present: WorkingMemoryRow | null,
  scope: ShownValue['scope'],
): ContextBlock | undefined {
  const blocks = rows.flatMap((row) => shownIn(row, scope) ?? [])
  const last = blocks.at(-1)
  const whole = blocks.some(({ mode }) => mode === 'snapshot')
  const value = present?.value ?? (last && '')
  if (value === undefined || (!last && isEmpty(value))) return undefined
  if (last && whole && same(last.value, value)) return undefined
  const snapshot = render('snapshot', formatValue(value))
  const delta = last && whole ? formatDelta(last.value, value) : undefined
  const shorter = delta === undefined ? undefined : render('delta', delta)
  const mode = shorter !== undefined && shorter.length < snapshot.length ? 'delta' : 'snapshot'
  const shown: ShownValue = { scope, mode, value }
  return { text: mode === 'delta' && shorter !== undefined ? shorter : snapshot, metadata: { workingMemory: { ...shown } } }
}

function shownIn({ role, content }: MessageRow, scope: ShownValue['scope']): ShownValue | undefined {
  const shown = role === 'context' ? (content.metadata?.workingMemory as ShownValue | undefined) : undefined
  return shown?.scope === scope ? shown : undefined
}

function render(mode: ShownValue['mode'], text: string): string {
  return `<working-memory${mode === 'delta' ? ' mode="delta"' : ''}>\n${escapeText(text)}\n</working-memory>`
}

function formatValue(value: WorkingMemoryValue): string {
  if (isEmpty(value)) return '(empty)'
  return typeof value === 'string' ? value.trim() : JSON.stringify(value)
}

function formatDelta(before: WorkingMemoryValue, after: WorkingMemoryValue): string | undefined {
  if (isEmpty(before) || isEmpty(after)) return undefined
  if (typeof before === 'string' && typeof after === 'string') return diffLines(before.trim().split('\n'), after.trim().split('\n'))
  if (typeof before === 'string' || typeof after === 'string') return undefined
  return JSON.stringify(mergePatchBetween(before, after))
}

/** The removed and added lines, after the line before them. */
function diffLines(before: readonly string[], after: readonly string[]): string {
  const least = Math.min(before.length, after.length)
  let start = 0
  while (start < least && before[start] === after[start]) start++
  let end = 0
  while (end < least - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const context = start > 0 ? [`  ${before[start - 1]}`] : []
  const removed = before.slice(start, before.length - end).map((line) => `- ${line}`)
  const added = after.slice(start, after.length - end).map((line) => `+ ${line}`)
  return [...context, ...removed, ...added].join('\n')
}

function isEmpty(value: WorkingMemoryValue): boolean {
  return typeof value === 'string' ? value.trim() === '' : Object.keys(value).length === 0
}

function same(a: WorkingMemoryValue, b: WorkingMemoryValue): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
