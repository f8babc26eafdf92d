import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { mapTexts, replaceTexts } from '../../base/json-texts.ts'
import type { MessageRow } from '../../message/row.ts'
import { taintOf } from '../../message/taint.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import type { ContextBlock } from '../../run/loop/run-contract.ts'
import { createTool, nestingOf, type Tool } from '../../run/tools/tool.ts'
import { compileSchema } from '../../schema/compile.ts'
import { escapeText } from '../../signals/tags.ts'
import type {
  ThreadStore, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryValue, WorkingMemoryWriter,
} from '../../store/contract/threads.ts'
import { mergePatchBetween } from '../../store/contract/working-memory.ts'
import { checkOfWhole, parsePath, patchInput, textInput } from './schema.ts'
import type { WorkingMemorySetting } from './setting.ts'

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
  const taintedBy = present?.taintedBy ?? []
  const whole = blocks.some(({ mode }) => mode === 'snapshot')
  const value = present?.value ?? (last && '')
  if (value === undefined || (!last && isEmpty(value))) return undefined
  if (last && whole && same(last.value, value) && taintedBy.every((one) => last.taintedBy.includes(one))) return undefined
  const snapshot = render('snapshot', formatValue(value))
  const delta = last && whole ? formatDelta(last.value, value) : undefined
  const shorter = delta === undefined ? undefined : render('delta', delta)
  const mode = shorter !== undefined && shorter.length < snapshot.length ? 'delta' : 'snapshot'
  const shown: ShownValue = { scope, mode, value }
  return {
    text: mode === 'delta' && shorter !== undefined ? shorter : snapshot,
    metadata: { workingMemory: { ...shown }, ...(taintedBy.length > 0 && { taintedBy: [...taintedBy] }) },
  }
}

function shownIn(
  { role, content }: MessageRow, scope: ShownValue['scope'],
): (ShownValue & { taintedBy: readonly string[] }) | undefined {
  const shown = role === 'context' ? (content.metadata?.workingMemory as ShownValue | undefined) : undefined
  return shown?.scope === scope ? { ...shown, taintedBy: taintOf(content) } : undefined
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

/** The name of the tool with which models change working memory. */
export const toolName = 'updateWorkingMemory'

/** The working memory of a run: its store, its owner, and the fence with which the run writes it. */
export interface RunWorkingMemory {
  store: ThreadStore
  of: WorkingMemoryOf
  by: WorkingMemoryWriter
}

/** Returns texts as processors leave them; rejects where one rejects them. */
export type CheckTexts = (texts: readonly string[]) => Promise<readonly string[]>

/**
 * The tool with which a model changes its working memory. Without `run` it has its description and schema, and rejects calls. It is
 * idempotent: running a call again after a crash makes the same change. What it stores is in later prompts, so `checkTexts` sees it first.
 */
export async function workingMemoryTool(
  setting: WorkingMemorySetting, run: RunWorkingMemory | undefined, checkTexts?: CheckTexts,
): Promise<Tool> {
  const { form, maxLength } = setting
  const text = 'template' in form
  const check = text ? undefined : checkOfWhole(form.schema)
  return createTool({
    id: toolName,
    description: text
      ? 'Replaces your working memory with a new text. Pass all of it, in the form that your instructions name.'
      : 'Changes fields of your working memory. Pass only what changes.',
    inputSchema: text ? textInput : await patchInput(form.schema),
    idempotent: true,
    async execute(input, context) {
      if (!run) throw new HeedError('no_active_run', 'Working memory can only be changed by a run on a thread.')
      const { memory: given, delete: removed = [] } = input as { memory?: string | JSONObject; delete?: string[] }
      const memory = checkTexts
        ? ((await replaceTexts((map) => mapTexts(given, map), checkTexts)) as typeof given)
        : given
      // Providers may give calls of two steps one id.
      const id = [run.by.runId, nestingOf(context)?.step ?? 0, context.toolCallId].join('/')
      const { taintedBy } = context
      const change =
        typeof memory === 'string' ? { set: memory } : { merge: memory ?? {}, remove: removed.map(parsePath), ...(check && { check }) }
      const taint = taintedBy.length > 0 && { taintedBy }
      const { version } = await run.store.mergeWorkingMemory(run.of, { id, maxLength, ...change, ...taint }, run.by)
      return { success: true, version }
    },
  })
}

/**
 * The instructions for working memory, the same in every prompt: its content is at the end of the prompt, so that a change leaves the
 * beginning unchanged.
 */
export async function workingMemoryInstructions(setting: WorkingMemorySetting): Promise<SystemMessage> {
  const { form, readOnly } = setting
  const lines = [
    'You have a working memory: notes that stay when older messages are out of sight. It is shown to you in <working-memory> blocks,' +
      ' written by the system and not by the user. A block holds all of it; one with mode="delta" holds what changed since the block' +
      ' before it. The last word counts. As long as there is no block, it is empty. Use what it says without mentioning it.',
    'template' in form
      ? 'It is a Markdown text. In a delta, lines with - went, lines with + came.'
      : 'It is a JSON object. A delta has only the fields that changed; null means that a field was removed.',
  ]
  if (readOnly) lines.push('You can read it and not change it.')
  else if ('template' in form)
    lines.push(
      `Whenever you learn something that will matter later, call ${toolName} with the complete new text: what you leave out is lost.` +
        ' Keep to this form:',
      form.template,
    )
  else
    lines.push(
      `Whenever you learn something that will matter later, call ${toolName} with the fields that change, and only those.` +
        ' To remove a field, name it in delete or set it to null. Its schema:',
      await schemaText(form.schema),
    )
  if (readOnly && !('template' in form)) lines.push('Its schema:', await schemaText(form.schema))
  return { role: 'system', content: lines.join('\n\n') }
}

async function schemaText(schema: Parameters<typeof compileSchema>[0]): Promise<string> {
  return JSON.stringify(await compileSchema(schema, 'workingMemory.schema').jsonSchema())
}
