import type { Run } from '../run/loop/run.ts'
import type { MessageRow } from '../message/row.ts'
import { createdSignal } from '../signals/created.ts'
import { rowToSignal } from '../signals/row.ts'
import type { CreatedAgentSignal } from '../signals/signal.ts'
import { lanePositionOf, stateSignal, type LanePosition } from '../signals/state.ts'
import type { HookCall } from './hook-call.ts'
import type { HookOf } from './hooks.ts'
import type { PartOfRun } from './part-of-run.ts'
import type { ComputeStateSignalArgs, Processor, ProcessorContext, StateSignalResult } from './processor.ts'
import { objectIn } from './returned.ts'

interface LaneCopy extends LanePosition {
  signal: CreatedAgentSignal
}

/** Asks a processor for the state of its lane, and adds it to the run when it is news to this window. */
export async function sendState(
  run: Run, processor: Processor, hook: HookOf<'computeStateSignal'>, call: HookCall, context: ProcessorContext, part: PartOfRun,
): Promise<void> {
  const stateId = processor.stateId ?? processor.id
  const copies = laneCopies(part.rows, stateId)
  const inWindow = sinceSnapshot(copies, snapshotGone(run, stateId))
  const known = inWindow.snapshot ? inWindow : await lostFrom(run, stateId, inWindow)
  const due = processor.maxDeltas !== undefined && known.deltas.length >= processor.maxDeltas
  const args: ComputeStateSignalArgs = {
    ...context,
    messages: part.messages,
    messageList: part.list,
    stepNumber: run.step,
    steps: run.steps,
    activeStateSignals: copies.map(({ signal }) => signal),
    contextWindow: { hasSnapshot: inWindow.snapshot !== undefined && !due },
    ...(known.snapshot ? { lastSnapshot: known.snapshot.signal } : {}),
    deltasSinceSnapshot: known.deltas.map(({ signal }) => signal),
  }
  await call.ask(hook, args, (returned) => (returned === undefined ? undefined : keepState(run, stateId, stateIn(returned), part)))
}

/** What the prompt has lost of a lane: the run has it, where a processor left it out, or history, where the window lies after it. */
async function lostFrom(run: Run, stateId: string, inWindow: ReturnType<typeof sinceSnapshot>): Promise<ReturnType<typeof sinceSnapshot>> {
  const inRun = sinceSnapshot(laneCopies(run.rows, stateId), snapshotGone(run, stateId))
  if (inRun.snapshot) return inRun
  return run.host.lanes.some(({ id }) => id === stateId) ? sinceSnapshot(laneCopies((await run.host.laneRows(stateId)).rows, stateId)) : inWindow
}

function stateIn(returned: unknown): StateSignalResult {
  const state = objectIn<StateSignalResult>(returned, stateFields, 'a state, or nothing')
  if (typeof state?.cacheKey !== 'string') throw new Error('it returned a state without a cacheKey.')
  return state
}

const stateFields = ['id', 'mode', 'cacheKey', 'contents', 'value', 'delta', 'tagName', 'attributes', 'metadata']

async function keepState(run: Run, stateId: string, { id = stateId, ...told }: StateSignalResult, part: PartOfRun): Promise<void> {
  const { input, lane } = stateSignal({ ...told, id }, run.threadId)
  const last = laneCopies(part.rows, id).at(-1)
  if (last && last.cacheKey === lane.cacheKey && last.mode === lane.mode) return
  const { metadata } = input
  // Where nothing is stored nobody else counts.
  const guess = { ...input, metadata: { ...metadata, state: { ...(metadata?.state as object), version: (last?.version ?? 0) + 1 } } }
  part.add(await run.sendState(guess, lane))
}

/** The version up to which no snapshot counts: the last one was deleted, and what changed after it is no change of an older one. */
function snapshotGone(run: Run, stateId: string): number {
  const lane = run.host.lanes.find(({ id }) => id === stateId)
  return lane && lane.lastSnapshotId === undefined ? lane.version : 0
}

function sinceSnapshot(copies: readonly LaneCopy[], gone = 0): { snapshot: LaneCopy | undefined; deltas: LaneCopy[] } {
  const at = copies.findLastIndex(({ mode, version }) => mode === 'snapshot' && version > gone)
  return { snapshot: copies[at], deltas: copies.slice(at + 1) }
}

/** By version: what was only stored may stand after what was told later. */
function laneCopies(rows: readonly MessageRow[], stateId: string): LaneCopy[] {
  const copies: LaneCopy[] = []
  for (const row of rows) {
    const lane = lanePositionOf(row)
    if (lane?.id === stateId) copies.push({ ...lane, signal: createdSignal(rowToSignal(row)) })
  }
  return copies.sort((a, b) => a.version - b.version)
}
