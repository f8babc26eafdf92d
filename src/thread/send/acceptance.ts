import { orderedJSON } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import { createdSignal } from '../../signals/created.ts'
import { isPlainObject } from '../../signals/json-copy.ts'
import { rowToSignal } from '../../signals/row.ts'
import type { CreatedAgentSignal, Signal } from '../../signals/signal.ts'
import type { Accepted } from '../../store/contract/threads.ts'

/** What a thread has of a signal, whether this send brought it or an earlier one with the same id. */
export interface Acceptance {
  /** The thread had this id already; the rest describes the first. */
  duplicate: boolean
  /** The run that was promised to it, or took it. None where it is in history only, or nowhere. */
  runId?: string
  signal: CreatedAgentSignal
  /** The first says something else than this send does. */
  differs: boolean
}

/** A signal that was sent: as its sender was given it, and as its row holds it. */
interface Brought {
  signal: Signal
  created: CreatedAgentSignal
  content: MessageRow['content']
}

export function acceptanceOf({ signal: sent, created, content }: Brought, { duplicate, runId, rows: [row] }: Accepted): Acceptance {
  const about = runId === undefined ? {} : { runId }
  // The store took the row as it was, with nothing added: there is nothing in it that isn't known here.
  if (!duplicate && row?.content === content) return { duplicate, ...about, signal: created, differs: false }
  const first = row && (row.role === 'signal' || row.role === 'user') ? rowToSignal(row) : sent
  return { duplicate, ...about, signal: createdSignal(first), differs: duplicate && essence(first) !== essence(sent) }
}

/** What a sender wrote, and nobody adds to: attributes depend on what a thread did at the time, and states get a version. */
function essence({ type, tagName, contents, metadata = {}, providerOptions = {} }: Signal): string {
  const { state, ...rest } = metadata
  const { version: _, ...said } = type === 'state' && isPlainObject(state) ? state : { state }
  return orderedJSON([type, tagName, contents, rest, said, providerOptions])
}
