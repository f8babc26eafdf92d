import type { Run } from '../run/run.ts'
import type { MessageList } from '../message/list.ts'
import { createdSignal } from '../signals/created.ts'
import { rowToSignal } from '../signals/row.ts'
import type { CreatedAgentSignal } from '../signals/signal.ts'
import type { Processor, ProcessorContext } from './processor.ts'

interface LaneCopy {
  id: string
  mode: 'snapshot' | 'delta'
  cacheKey: string
  version: number
}

/** Asks a processor for the state of its lane, and adds it to the run when it is news. */
export async function sendState(run: Run, processor: Processor, context: ProcessorContext, list: MessageList): Promise<void> {
  const stateId = processor.stateId ?? processor.id
  const copies = laneCopies(list, stateId)
  const snapshotAt = copies.findLastIndex(({ lane }) => lane.mode === 'snapshot')
  const snapshot = copies[snapshotAt]
  const state = await processor.computeStateSignal?.({
    ...context,
    messages: list.get.all.db(),
    messageList: list,
    stepNumber: run.step,
    steps: run.steps,
    activeStateSignals: copies.map(({ signal }) => signal),
    contextWindow: { hasSnapshot: snapshot !== undefined },
    ...(snapshot ? { lastSnapshot: snapshot.signal } : {}),
    deltasSinceSnapshot: copies.slice(snapshotAt + 1).map(({ signal }) => signal),
  })
  if (!state) return
  if (typeof state.cacheKey !== 'string') throw new Error('it returned a state without a cacheKey.')
  const mode = state.mode ?? 'snapshot'
  const id = state.id ?? stateId
  const last = (id === stateId ? copies : laneCopies(list, id)).at(-1)?.lane
  if (last && last.cacheKey === state.cacheKey && last.mode === mode) return
  const lane: LaneCopy & { threadId?: string } = {
    id,
    mode,
    cacheKey: state.cacheKey,
    version: (last?.version ?? 0) + 1,
    ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
  }
  await run.sendSignal({
    type: 'state',
    contents: state.contents,
    ...(state.tagName === undefined ? {} : { tagName: state.tagName }),
    ...(state.attributes === undefined ? {} : { attributes: state.attributes }),
    metadata: {
      ...state.metadata,
      state: lane,
      ...(state.value === undefined ? {} : { value: state.value }),
      ...(state.delta === undefined ? {} : { delta: state.delta }),
    },
  })
}

function laneCopies(list: MessageList, stateId: string): Array<{ signal: CreatedAgentSignal; lane: LaneCopy }> {
  const copies: Array<{ signal: CreatedAgentSignal; lane: LaneCopy }> = []
  for (const message of list.get.all.db()) {
    if (message.role !== 'signal') continue
    const signal = createdSignal(rowToSignal(message))
    const lane = signal.metadata?.state as LaneCopy | undefined
    if (signal.type === 'state' && lane?.id === stateId) copies.push({ signal, lane })
  }
  return copies
}
