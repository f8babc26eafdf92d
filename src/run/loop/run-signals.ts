import type { MessageRow } from '../../message/row.ts'
import { signalToDataChunk } from '../../signals/echo.ts'
import { rowToSignal } from '../../signals/row.ts'
import type { Signal } from '../../signals/signal.ts'
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
  const { rows: context, quoted } = await run.contextRows(sent)
  const rows = [...sent, ...context]
  if (rows.length === 0) return
  const stored = await run.commit({ step: run.step, rows, ...(quoted.length > 0 && { quoted }) })
  const ids = quoted.length > 0 && stored.rows ? new Set(stored.rows.map(({ id }) => id)) : undefined
  run.append(ids ? rows.filter(({ id }) => ids.has(id)) : rows)
}

/** The state of a lane, after what was sent before it. Its version is the store's to give, so it is stored before it is shown. */
export async function keepState(run: Run, signal: Signal, lane: Omit<NonNullable<RunCommit['lane']>, 'rowId'>): Promise<MessageRow[]> {
  const sent = await keepSent(run)
  const made = run.rowOf(signal)
  const { rows } = await run.commit({ step: run.step, rows: [made], lane: { ...lane, rowId: made.id } })
  const row = rows?.[0] ?? made
  run.trace?.laneChanged(lane.id, lane.mode, run.step)
  run.append([row])
  await run.say(signalToDataChunk(rowToSignal(row), run.id))
  return [...sent, row]
}
