import type { MessageRow } from '../message/row.ts'
import type { Run } from '../run/loop/run.ts'
import { createdSignal, rowToSignal } from '../signals/conversions.ts'
import type { CreatedAgentSignal } from '../signals/signal.ts'
import { lanePositionOf, stateSignal, type LanePosition } from '../signals/state.ts'
import type { HookCall } from './hook-call.ts'
import type { HookMessages } from './hook-messages.ts'
import { readObject } from './hook-results.ts'
import type { HookOf } from './hooks.ts'
import type { ComputeStateSignalArgs, Processor, ProcessorContext, StateSignalResult } from './processor.ts'

interface LaneSignal extends LanePosition {
  signal: CreatedAgentSignal
}

/** The newest snapshot of a lane and the deltas after it. */
interface LaneState {
  snapshot: LaneSignal | undefined
  deltas: LaneSignal[]
}

/** Calls `computeStateSignal`, and adds the state to the run when the lane's last signal in the window differs. */
export async function computeState(
  run: Run, processor: Processor, hook: HookOf<'computeStateSignal'>, call: HookCall, context: ProcessorContext, window: HookMessages,
): Promise<void> {
  const stateId = processor.stateId ?? processor.id
  const signals = laneSignals(window.rows, stateId)
  const inWindow = sinceSnapshot(signals, deletedUpTo(run, stateId))
  const known = inWindow.snapshot ? inWindow : await outsideWindow(run, stateId, inWindow)
  const isDue = processor.maxDeltas !== undefined && known.deltas.length >= processor.maxDeltas
  const args: ComputeStateSignalArgs = {
    ...context,
    messages: window.messages,
    messageList: window.list,
    stepNumber: run.step,
    steps: run.shownSteps,
    activeStateSignals: signals.map(({ signal }) => signal),
    contextWindow: { hasSnapshot: inWindow.snapshot !== undefined && !isDue },
    ...(known.snapshot ? { lastSnapshot: known.snapshot.signal } : {}),
    deltasSinceSnapshot: known.deltas.map(({ signal }) => signal),
  }
  await call.invoke(hook, args, (returned) => {
    window.apply(undefined)
    return returned === undefined ? undefined : addState(run, stateId, readState(returned), window)
  })
}

/** The state of a lane whose snapshot is not in the window: from the run, where a processor left it out, else from history. */
async function outsideWindow(run: Run, stateId: string, inWindow: LaneState): Promise<LaneState> {
  const inRun = sinceSnapshot(laneSignals(run.rows, stateId), deletedUpTo(run, stateId))
  if (inRun.snapshot) return inRun
  if (!run.host.lanes.some(({ id }) => id === stateId)) return inWindow
  return sinceSnapshot(laneSignals((await run.host.laneRows(stateId)).rows, stateId))
}

function readState(returned: unknown): StateSignalResult {
  const state = readObject<StateSignalResult>(returned, stateFields, 'a state, or nothing')
  if (typeof state?.cacheKey !== 'string') throw new Error('it returned a state without a cacheKey.')
  return state
}

const stateFields = ['id', 'mode', 'cacheKey', 'contents', 'value', 'delta', 'tagName', 'attributes', 'metadata']

async function addState(run: Run, stateId: string, { id = stateId, ...state }: StateSignalResult, window: HookMessages): Promise<void> {
  const { input, lane } = stateSignal({ ...state, id }, run.threadId)
  const last = laneSignals(window.rows, id).at(-1)
  if (last && last.cacheKey === lane.cacheKey && last.mode === lane.mode) return
  const { metadata } = input
  // The version of a run without a store, which has no other writers; a store assigns its own.
  const version = (last?.version ?? 0) + 1
  const versioned = { ...input, metadata: { ...metadata, state: { ...(metadata?.state as object), version } } }
  window.add(await run.sendState(versioned, lane))
}

/** The version up to which snapshots don't count: the last snapshot was deleted, and later deltas don't apply to an older one. */
function deletedUpTo(run: Run, stateId: string): number {
  const lane = run.host.lanes.find(({ id }) => id === stateId)
  return lane && lane.lastSnapshotId === undefined ? lane.version : 0
}

function sinceSnapshot(signals: readonly LaneSignal[], deleted = 0): LaneState {
  const at = signals.findLastIndex(({ mode, version }) => mode === 'snapshot' && version > deleted)
  return { snapshot: signals[at], deltas: signals.slice(at + 1) }
}

/** Sorted by version: a persisted state may stand in history after a later one. */
function laneSignals(rows: readonly MessageRow[], stateId: string): LaneSignal[] {
  const signals: LaneSignal[] = []
  for (const row of rows) {
    const lane = lanePositionOf(row)
    if (lane?.id === stateId) signals.push({ ...lane, signal: createdSignal(rowToSignal(row)) })
  }
  return signals.sort((a, b) => a.version - b.version)
}
