import type { JSONObject } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'

/**
 * Something that the model is to know besides the conversation. Asked before every model call with the rows that the model sees; what
 * it answers is stored before the call, shown at the end of the prompt, and stays there. Readers of the thread don't see it.
 */
export type ContextSource = (rows: readonly MessageRow[]) => Promise<ContextBlock | undefined>

export interface ContextBlock {
  text: string
  /** Kept with the row. `sources` has the ids of messages of the thread that it quotes, `quotes` those of others: it goes when they do. */
  metadata: JSONObject
  /** The same with what they say: where that is no longer so when the block is stored, it isn't stored, nor shown. */
  quoted?: ReadonlyArray<{ threadId: string; messageId: string; text: string }>
}
