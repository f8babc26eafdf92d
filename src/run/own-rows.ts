import type { MessagePart } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { signalToDataChunk } from '../signals/echo.ts'
import { renderSignal } from '../signals/render.ts'
import { rowToSignal } from '../signals/row.ts'
import type { Signal } from '../signals/signal.ts'
import type { Run } from './run.ts'
import type { RunCommit } from './run-host.ts'

/** Signals that processors added for this step have to be in history before the model reads them. */
export async function keepSent(run: Run): Promise<MessageRow[]> {
  const sent = run.takeSent()
  if (sent.length === 0) return sent
  await run.commit({ step: run.step, rows: sent })
  run.append(sent)
  return sent
}

/** The last look before a model call: what was sent, and after it what else the model has to know. */
export async function keepContext(run: Run): Promise<void> {
  const sent = run.takeSent()
  const rows = [...sent, ...(await run.contextRows(sent))]
  if (rows.length === 0) return
  await run.commit({ step: run.step, rows })
  run.append(rows)
}

/** The state of a lane, after what was sent before it. Its version is the store's to give, so it is stored before it is shown. */
export async function keepState(run: Run, signal: Signal, lane: Omit<NonNullable<RunCommit['lane']>, 'rowId'>): Promise<MessageRow[]> {
  const sent = await keepSent(run)
  const made = run.rowOf(signal)
  const { rows } = await run.commit({ step: run.step, rows: [made], lane: { ...lane, rowId: made.id } })
  const row = rows?.[0] ?? made
  run.append([row])
  await run.say(signalToDataChunk(rowToSignal(row), run.id))
  return [...sent, row]
}

/**
 * What producers outside told of a lane may have left the window. It is told again at the end of the prompt, once: the last snapshot
 * and every change since, as one row of context. Lanes that a processor keeps are the processor's to tell.
 */
export async function repeatLanes(run: Run): Promise<void> {
  if (run.lanesRepeated) return
  run.lanesRepeated = true
  const lanes = run.host.lanes.filter(({ id, lastSnapshotId }) => lastSnapshotId !== undefined && !run.processors.lanes.has(id))
  if (lanes.length === 0) return
  const shown = new Set(run.rows.flatMap(({ id, role, content }) => (role === 'context' ? sourcesOf(content.metadata?.sources) : [id])))
  const repeated: MessageRow[] = []
  for (const { id, lastSnapshotId } of lanes) {
    if (lastSnapshotId !== undefined && shown.has(lastSnapshotId)) continue
    const { rows, left } = await run.host.laneRows(id)
    const [snapshot] = rows
    // The newest snapshot may still wait for its turn, and the one before it be in sight.
    if (!snapshot || !isSnapshot(snapshot) || shown.has(snapshot.id)) continue
    repeated.push(repetition(run, id, rows, left))
  }
  if (repeated.length === 0) return
  await run.commit({ step: run.step, rows: repeated })
  run.append(repeated)
}

function repetition(run: Run, lane: string, rows: readonly MessageRow[], left: number): MessageRow {
  const [snapshot, ...changes] = rows.map(partsOf)
  const gap: MessagePart[] = left === 0 ? [] : [{ type: 'text', text: `(${left} changes are left out here)` }]
  const row = run.contextRow('')
  const parts = [...(snapshot ?? []), ...gap, ...changes.flat()]
  return { ...row, content: { ...row.content, parts, metadata: { sources: rows.map(({ id }) => id), lane } } }
}

/** A signal in the words in which the model read it first. */
function partsOf(row: MessageRow): MessagePart[] {
  const text = renderSignal(rowToSignal(row)).content.flatMap((part): MessagePart[] => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []))
  return [...text, ...row.content.parts.filter((part) => part.type === 'file')]
}

function isSnapshot(row: MessageRow): boolean {
  const state = rowToSignal(row).metadata?.state
  return typeof state === 'object' && state !== null && 'mode' in state && state.mode === 'snapshot'
}

function sourcesOf(sources: unknown): string[] {
  return Array.isArray(sources) ? sources.filter((source) => typeof source === 'string') : []
}
