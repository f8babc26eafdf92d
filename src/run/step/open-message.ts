import type { MessageRow } from '../../message/row.ts'

/** The message that a run is writing. It ends where something else stands after it: no two may have one id. */
export class OpenMessage {
  id: string
  /** Something else stands after it already. */
  sealed = false
  #begun = false
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
    this.id = newId()
  }

  /** Rows that stand in history now. */
  follow(rows: readonly MessageRow[]): void {
    for (const row of rows) {
      if (row.role === 'assistant') this.#begun = true
      else if (this.#begun && isApart(row)) this.sealed = true
    }
  }

  /** The message that the model's next words belong to. */
  next(): string {
    if (this.sealed) {
      this.id = this.#newId()
      this.#begun = false
      this.sealed = false
    }
    return this.id
  }

  /** Goes on with the message of the last of these rows that has the call, or that is of this message. */
  resume(rows: readonly MessageRow[], from: { toolCallId?: string; messageId?: string }): void {
    const { toolCallId, messageId } = from
    const index = rows.findLastIndex((row) =>
      row.role === 'assistant' && (toolCallId === undefined ? row.messageId === messageId : hasCall(row, toolCallId)))
    const row = rows[index]
    if (!row) return
    this.id = row.messageId
    this.follow(rows.slice(index))
  }
}

function isApart({ role }: MessageRow): boolean {
  return role === 'signal' || role === 'user'
}

function hasCall({ content }: MessageRow, toolCallId: string): boolean {
  return content.parts.some((part) => part.type === 'tool-invocation' && part.toolInvocation.toolCallId === toolCallId)
}
