import type { MessagePart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { lanePositionOf } from '../../signals/state.ts'
import { renderSignal } from '../../signals/render.ts'
import { rowToSignal } from '../../signals/row.ts'
import type { Run } from './run.ts'

/**
 * What a lane says may have left the window, or stand there in another order than it was told in: a state that was only stored comes after one
 * that was told later and delivered. Then it is told again at the end of the prompt, once: the last snapshot and every change since, as one
 * row of context. What the window has lost of a lane that a processor keeps is the processor's to tell.
 */
export async function repeatLanes(run: Run): Promise<void> {
  if (run.lanesRepeated) return
  run.lanesRepeated = true
  const mixed = mixedLanes(run.rows)
  const lanes = run.host.lanes.filter(({ id, lastSnapshotId }) => lastSnapshotId !== undefined && !mixed.has(id) && !run.processors.lanes.has(id))
  if (lanes.length + mixed.size === 0) return
  const shown = new Set(run.rows.flatMap(({ id, role, content }) => (role === 'context' ? sourcesOf(content.metadata?.sources) : [id])))
  const repeated: MessageRow[] = []
  for (const id of mixed) {
    const { rows, left } = await run.host.laneRows(id)
    if (rows.length > 0) repeated.push(repetition(run, id, rows, left))
  }
  for (const { id, lastSnapshotId } of lanes) {
    if (lastSnapshotId !== undefined && shown.has(lastSnapshotId)) continue
    const { rows, left } = await run.host.laneRows(id)
    const [snapshot] = rows
    // The newest snapshot may still wait for its turn, and the one before it be in sight.
    if (!snapshot || lanePositionOf(snapshot)?.mode !== 'snapshot' || shown.has(snapshot.id)) continue
    repeated.push(repetition(run, id, rows, left))
  }
  if (repeated.length === 0) return
  await run.commit({ step: run.step, rows: repeated })
  run.append(repeated)
}

/** The lanes whose newest state is not the last that the model reads of them. */
function mixedLanes(rows: readonly MessageRow[]): Set<string> {
  const newest = new Map<string, number>()
  const mixed = new Set<string>()
  for (const row of rows) {
    const { lane, version } = told(row, newest)
    if (lane === undefined) continue
    if (version < (newest.get(lane) ?? 0)) mixed.add(lane)
    else {
      newest.set(lane, version)
      mixed.delete(lane)
    }
  }
  return mixed
}

function told(row: MessageRow, newest: ReadonlyMap<string, number>): { lane: string | undefined; version: number } {
  if (row.role === 'context') {
    const { lane, version } = row.content.metadata ?? {}
    if (typeof lane !== 'string') return { lane: undefined, version: 0 }
    return { lane, version: typeof version === 'number' ? version : (newest.get(lane) ?? 0) }
  }
  const { id, version = 0 } = lanePositionOf(row) ?? {}
  return { lane: id, version }
}

function repetition(run: Run, lane: string, rows: readonly MessageRow[], left: number): MessageRow {
  const [snapshot, ...changes] = rows.map(partsOf)
  const gap: MessagePart[] = left === 0 ? [] : [{ type: 'text', text: `(${left} changes are left out here)` }]
  const row = run.contextRow('')
  const parts = [...(snapshot ?? []), ...gap, ...changes.flat()]
  const [last] = rows.slice(-1)
  const version = last && lanePositionOf(last)?.version
  return { ...row, content: { ...row.content, parts, metadata: { sources: rows.map(({ id }) => id), lane, ...(version === undefined ? {} : { version }) } } }
}

/** A signal in the words in which the model read it first. */
function partsOf(row: MessageRow): MessagePart[] {
  const text = renderSignal(rowToSignal(row)).content.flatMap((part): MessagePart[] => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []))
  return [...text, ...row.content.parts.filter((part) => part.type === 'file')]
}

function sourcesOf(sources: unknown): string[] {
  return Array.isArray(sources) ? sources.filter((source) => typeof source === 'string') : []
}
