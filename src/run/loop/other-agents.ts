import { mapTexts } from '../../base/json-texts.ts'
import { isObject, type JSONObject } from '../../base/json.ts'
import type { MessagePart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { isAnswer, isSent } from './unanswered.ts'
import type { Run } from './run.ts'

/*
 * Agents may share a thread. The input processors of one have not seen what entered by another, so that they see it, with its answers, when
 * it first enters the window. A turn that they reject is left out of the prompts of this agent and stays in history. The result is kept in
 * a context row without text: it stands after the turns that it is about, so that every window with such a turn has it.
 */

type MapText = (text: string) => string

/** The result of such a check, in the metadata of its context row. */
interface CheckedTurns extends JSONObject {
  agentId: string
  /** The runs of the turns. */
  runs: string[]
  /** Those that are left out. */
  withheld: string[]
  /** The texts of the rows that processors changed, as they left them. A list: ids of rows are chosen by callers. */
  changed: Array<{ id: string; texts: string[] }>
}

/** The rows as the input processors of an agent left them, where they have checked turns of other agents. */
export function asChecked(rows: readonly MessageRow[], agentId: string): readonly MessageRow[] {
  const checks = checksOf(rows, agentId)
  if (checks.length === 0) return rows
  const withheld = new Set(checks.flatMap((check) => check.withheld))
  const changed = new Map(checks.flatMap((check) => check.changed.map(({ id, texts }) => [id, texts] as const)))
  const turns = turnsOf(rows)
  return rows.flatMap((row) => {
    if (withheld.has(turns.get(row) ?? '')) return []
    const left = changed.get(row.id)
    return left ? withTexts(row, left) : row
  })
}

/** Has the input processors check the turns of other agents that they have not checked. */
export async function checkOtherAgents(run: Run): Promise<void> {
  const turns = await uncheckedTurns(run)
  if (turns.size === 0) return
  const check: CheckedTurns = { agentId: run.agent.id, runs: [...turns.keys()], withheld: [], changed: [] }
  // Together, which is one call of the hooks. Where they reject, each turn alone.
  if (!(await accepts(run, [...turns.values()].flat(), check))) {
    for (const [turn, rows] of turns) if (!(await accepts(run, rows, check))) check.withheld.push(turn)
  }
  const row = run.contextRow('', { checkedTurns: check })
  await run.commit({ step: run.step, rows: [row] })
  run.history.append([row])
  run.history.showChecked()
}

/** True if one of the rows is of a turn of another agent. */
export async function isOfOthers(run: Run, rows: readonly MessageRow[]): Promise<boolean> {
  const { agentOf } = run
  if (!agentOf) return false
  for (const { runId } of rows) if (runId !== undefined && runId !== run.id && (await agentOf(runId)) !== run.agent.id) return true
  return false
}

async function uncheckedTurns(run: Run): Promise<Map<string, MessageRow[]>> {
  const turns = new Map<string, MessageRow[]>()
  const { agentOf } = run
  if (!agentOf) return turns
  const known = new Set(checksOf(run.rows, run.agent.id).flatMap(({ runs }) => runs))
  for (const [row, turn] of turnsOf(run.rows)) {
    if (turn === run.id || known.has(turn)) continue
    const rows = turns.get(turn)
    if (rows) rows.push(row)
    else turns.set(turn, [row])
  }
  // Unknown runs are of others: their records may have been pruned.
  for (const turn of turns.keys()) if ((await agentOf(turn)) === run.agent.id) turns.delete(turn)
  return turns
}

/** Whether the processors accept the rows. The texts that they changed are added to the check. */
async function accepts(run: Run, rows: readonly MessageRow[], { changed }: CheckedTurns): Promise<boolean> {
  const given = rows.map(textsOf)
  try {
    const left = await run.processors.texts(run, given.flat(), 'context')
    let next = 0
    for (const [index, row] of rows.entries()) {
      const own = given[index] ?? []
      const after = left.slice(next, next += own.length)
      if (own.some((text, at) => text !== after[at])) changed.push({ id: row.id, texts: after })
    }
    return true
  } catch (error) {
    if (!(error instanceof TripwireAbort)) throw error
    const { processorId, reason } = error.tripwire
    const runIds = [...new Set(rows.map(({ runId }) => runId))]
    const what = 'a processor rejected what entered a thread by another agent: it is left out'
    run.logger.warn(what, { runId: run.id, runIds, processorId, reason })
    return false
  }
}

/** The run of each row that a run wrote or read. Input that was stored without a run belongs to the run that answered it. */
function turnsOf(rows: readonly MessageRow[]): Map<MessageRow, string> {
  const turns: Array<[MessageRow, string]> = []
  let answeredBy: string | undefined
  for (const row of rows.toReversed()) {
    if (isAnswer(row)) answeredBy = row.runId
    if (row.role === 'context' || row.role === 'system') continue
    const turn = row.runId ?? (isSent(row) ? answeredBy : undefined)
    if (turn !== undefined) turns.push([row, turn])
  }
  return new Map(turns.reverse())
}

function checksOf(rows: readonly MessageRow[], agentId: string): CheckedTurns[] {
  return rows.flatMap(({ role, content }) => {
    const check = role === 'context' ? content.metadata?.checkedTurns : undefined
    return isObject(check) && check.agentId === agentId ? (check as CheckedTurns) : []
  })
}

function textsOf(row: MessageRow): string[] {
  const texts: string[] = []
  mapRow(row, (text) => {
    texts.push(text)
    return text
  })
  return texts
}

function withTexts(row: MessageRow, texts: readonly string[]): MessageRow {
  let next = 0
  return mapRow(row, (text) => texts[next++] ?? text)
}

/** The row with each text replaced that a model reads of it: also the attributes of a signal. */
function mapRow(row: MessageRow, map: MapText): MessageRow {
  const parts = row.content.parts.map((part) => mapPart(part, map))
  const signal = row.role === 'signal' ? row.content.metadata?.signal : undefined
  if (!isObject(signal) || !isObject(signal.attributes)) return { ...row, content: { ...row.content, parts } }
  const attributes = mapTexts(signal.attributes, map) as JSONObject
  const metadata = { ...row.content.metadata, signal: { ...(signal as JSONObject), attributes } }
  return { ...row, content: { ...row.content, parts, metadata } }
}

function mapPart(part: MessagePart, map: MapText): MessagePart {
  if (part.type === 'text') return { ...part, text: map(part.text) }
  if (part.type === 'reasoning') return { ...part, reasoning: map(part.reasoning) }
  if (part.type !== 'tool-invocation') return part
  const { args, result, errorText, modelOutput } = part.toolInvocation
  return {
    ...part,
    toolInvocation: {
      ...part.toolInvocation,
      args: mapTexts(args, map) as typeof args,
      ...(result === undefined ? {} : { result: mapTexts(result, map) as typeof result }),
      ...(errorText === undefined ? {} : { errorText: map(errorText) }),
      ...(modelOutput === undefined ? {} : { modelOutput: mapTexts(modelOutput, map) as typeof modelOutput }),
    },
  }
}
