import type { ThreadStatus } from '../../machine.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'

/** A call that waits for somebody. */
export interface WaitingApproval {
  runId: string
  toolCallId: string
  toolName: string
  args: unknown
  /** `approval`: yes or no. `suspend`: the tool waits for data. */
  kind: 'approval' | 'suspend'
  payload?: unknown
}

/** What a display shows of a thread. Never changed in place: what is the same object is the same. */
export interface ThreadView {
  messages: readonly UIMessage[]
  /** The thread has older ones, which no snapshot tells. */
  hasOlder: boolean
  status: ThreadStatus
  runId: string | null
  approvals: readonly WaitingApproval[]
  /** Why the last run failed, until the next begins. */
  error: { message: string; code?: string } | null
  /** The message that is being written. */
  writing: string | null
  /** Texts of it that go on: the model's name for each, and its place among the parts. */
  openTexts: ReadonlyArray<{ kind: 'text' | 'reasoning'; id: string; at: number }>
}

export const emptyView: ThreadView = { messages: [], hasOlder: false, status: 'idle', runId: null, approvals: [], error: null, writing: null, openTexts: [] }

/** Puts a message in its place: over the one with its id, or at the end. */
export function withMessage(view: ThreadView, message: UIMessage): ThreadView {
  const index = view.messages.findLastIndex(({ id }) => id === message.id)
  return { ...view, messages: index < 0 ? [...view.messages, message] : view.messages.with(index, message) }
}

export function messageOf(view: ThreadView, id: string | null): UIMessage | undefined {
  return id === null ? undefined : view.messages.findLast((message) => message.id === id)
}
