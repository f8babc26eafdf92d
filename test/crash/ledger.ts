import { DatabaseSync } from 'node:sqlite'
import { marksIn } from './restless-model.ts'

/** What the database holds, as plain facts. */
export interface Ledger {
  threads: LedgerThread[]
  /** What SQLite says about its own file. */
  integrity: string
}

export interface LedgerThread {
  id: string
  status: string
  epoch: number
  owner: string | null
  mail: Array<{ id: string; ord: number; kind: string; route: string; state: string; runId: string | null; step: number | null }>
  rows: Array<{ id: string; messageId: string; seq: number; role: string; runId: string | null; text: string; marks: string[]; calls: LedgerCall[] }>
  runs: Array<{ runId: string; status: string; epoch: number; attempts: number }>
}

interface LedgerCall {
  call: string
  tool: string
  state: string
  /** The call that a result says it is of. */
  done?: string
  error?: string
}

export function readLedger(database: string): Ledger {
  const db = new DatabaseSync(database, { readOnly: true, timeout: 60_000 })
  try {
    const threads = db.prepare('SELECT key, id, status, epoch, owner FROM heed_threads ORDER BY key').all()
    // The mailbox also has the records of decisions, which are no signals.
    const mail = db.prepare(`
      SELECT id, ord, kind, route, state, run_id AS runId, step FROM heed_mailbox
      WHERE thread = ? AND id NOT GLOB 'decision:*' AND id NOT GLOB 'decided:*' AND id NOT GLOB 'decided-call:*' ORDER BY ord`)
    const rows = db.prepare('SELECT id, message_id AS messageId, seq, role, run_id AS runId, content FROM heed_messages WHERE thread = ? ORDER BY seq')
    const runs = db.prepare('SELECT run_id AS runId, status, epoch, attempts FROM heed_runs WHERE thread = ? ORDER BY key')
    return {
      integrity: String(db.prepare('PRAGMA integrity_check').get()?.integrity_check),
      threads: threads.map(({ key = null, ...thread }) => ({
        ...(thread as unknown as Omit<LedgerThread, 'mail' | 'rows' | 'runs'>),
        mail: mail.all(key) as unknown as LedgerThread['mail'],
        rows: rows.all(key).map(({ content, ...row }) => ({ ...(row as unknown as LedgerThread['rows'][number]), ...contentsOf(String(content)) })),
        runs: runs.all(key) as unknown as LedgerThread['runs'],
      })),
    }
  } finally {
    db.close()
  }
}

interface StoredPart {
  type: string
  text?: string
  toolInvocation?: { toolCallId: string; toolName: string; state: string; result?: { done?: string }; errorText?: string }
}

export function contentsOf(content: string): { text: string; marks: string[]; calls: LedgerCall[] } {
  const { parts } = JSON.parse(content) as { parts: StoredPart[] }
  const text = parts.map((part) => part.text ?? '').join('')
  const calls = parts.flatMap(({ toolInvocation }): LedgerCall[] => {
    if (!toolInvocation) return []
    const { toolCallId: call, toolName: tool, state, result, errorText } = toolInvocation
    return [{ call, tool, state, ...(result?.done === undefined ? {} : { done: result.done }), ...(errorText === undefined ? {} : { error: errorText }) }]
  })
  return { text, marks: marksIn(JSON.stringify(parts)).map(({ id }) => id), calls }
}

/** What is not at rest yet: threads that run or wait, and signals that no run has taken or answered. */
export function unrest(db: DatabaseSync): string[] {
  return db.prepare(`
    SELECT t.id || ' is ' || t.status || ', ' || (SELECT count(*) FROM heed_mailbox m WHERE m.thread = t.key AND m.open = 1) || ' open' AS what
    FROM heed_threads t
    WHERE t.status <> 'idle' OR EXISTS (SELECT 1 FROM heed_mailbox m WHERE m.thread = t.key AND m.open = 1)`).all().map(({ what }) => String(what))
}
