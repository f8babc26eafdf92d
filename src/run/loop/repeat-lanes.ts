import type { MessagePart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { lanePositionOf } from '../../signals/state.ts'
import { renderSignal } from '../../signals/render.ts'
import { rowToSignal } from '../../signals/conversions.ts'
import { isOfOthers } from './other-agents.ts'
import type { Run } from './run.ts'

/**
 * The state of a lane may be missing from the window, or its versions may be out of order there: a state that was persisted can stand
 * after a newer one that was delivered. Such a lane is repeated once at the end of the prompt: its last snapshot and all deltas since,
 * as one context row. A lane that a processor maintains is not repeated when the window lacks it: the processor sends it again.
 */
export async function repeatLanes(run: Run): Promise<void> {
  if (run.lanesRepeated) return
  run.lanesRepeated = true
  const outOfOrder = lanesOutOfOrder(run.rows)
  const stored = run.host.lanes.filter(({ id, lastSnapshotId }) =>
    lastSnapshotId !== undefined && !outOfOrder.has(id) && !run.processors.lanes.has(id))
  if (stored.length + outOfOrder.size === 0) return
  const inPrompt = new Set(run.rows.flatMap(({ id, role, content }) => (role === 'context' ? sourcesOf(content.metadata?.sources) : [id])))
  const repeated: Repetition[] = []
  for (const id of outOfOrder) {
    const { rows, left } = await run.host.laneRows(id)
    if (rows.length > 0) repeated.push(repetition(run, id, rows, left))
  }
  for (const { id, lastSnapshotId } of stored) {
    if (lastSnapshotId !== undefined && inPrompt.has(lastSnapshotId)) continue
    const { rows, left } = await run.host.laneRows(id)
    const [snapshot] = rows
    // The newest snapshot may still be pending, and the one before it be in the window.
    if (!snapshot || lanePositionOf(snapshot)?.mode !== 'snapshot' || inPrompt.has(snapshot.id)) continue
    repeated.push(repetition(run, id, rows, left))
  }
  const shown: MessageRow[] = []
  for (const one of repeated) if (await isAccepted(run, one)) shown.push(one.row)
  if (shown.length === 0) return
  await run.commit({ step: run.step, rows: shown })
  run.history.append(shown)
}

/** Input processors check a state that entered by another agent. One that they reject or change is left out. */
async function isAccepted(run: Run, { row, of }: Repetition): Promise<boolean> {
  if (!run.processors.readsInput || !(await isOfOthers(run, of))) return true
  const text = row.content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  return (await run.checkedContext(text)) === text
}

/** The lanes whose newest state is not the last one that the prompt has of them. */
function lanesOutOfOrder(rows: readonly MessageRow[]): Set<string> {
  const newest = new Map<string, number>()
  const outOfOrder = new Set<string>()
  for (const row of rows) {
    const { lane, version } = stateOf(row, newest)
    if (lane === undefined) continue
    if (version < (newest.get(lane) ?? 0)) outOfOrder.add(lane)
    else {
      newest.set(lane, version)
      outOfOrder.delete(lane)
    }
  }
  return outOfOrder
}

function stateOf(row: MessageRow, newest: ReadonlyMap<string, number>): { lane: string | undefined; version: number } {
  if (row.role === 'context') {
    const { lane, version } = row.content.metadata ?? {}
    if (typeof lane !== 'string') return { lane: undefined, version: 0 }
    return { lane, version: typeof version === 'number' ? version : (newest.get(lane) ?? 0) }
  }
  const { id, version = 0 } = lanePositionOf(row) ?? {}
  return { lane: id, version }
}

/** A row that repeats a lane, and the rows that it repeats. */
interface Repetition {
  row: MessageRow
  of: readonly MessageRow[]
}

function repetition(run: Run, lane: string, rows: readonly MessageRow[], left: number): Repetition {
  const [snapshot, ...deltas] = rows.map(partsOf)
  const gap: MessagePart[] = left === 0 ? [] : [{ type: 'text', text: `(${left} changes are left out here)` }]
  const row = run.contextRow('')
  const parts = [...(snapshot ?? []), ...gap, ...deltas.flat()]
  const [last] = rows.slice(-1)
  const version = last && lanePositionOf(last)?.version
  const metadata = { sources: rows.map(({ id }) => id), lane, ...(version === undefined ? {} : { version }) }
  return { row: { ...row, content: { ...row.content, parts, metadata } }, of: rows }
}

/** The text of a signal as the model read it first. */
function partsOf(row: MessageRow): MessagePart[] {
  const { content } = renderSignal(rowToSignal(row))
  const text = content.flatMap((part): MessagePart[] => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []))
  return [...text, ...row.content.parts.filter((part) => part.type === 'file')]
}

function sourcesOf(sources: unknown): string[] {
  return Array.isArray(sources) ? sources.filter((source) => typeof source === 'string') : []
}
