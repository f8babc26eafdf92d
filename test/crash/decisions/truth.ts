import { DatabaseSync } from 'node:sqlite'
import type { Evidence } from '../checks/evidence.ts'
import type { Told } from './notes.ts'

/** What the database holds about calls and decisions, as plain facts. */
export interface Truth {
  /** Each decision that was made about a request, on each thread that keeps it. */
  made: Array<Told & { thread: string; approvalId: string }>
  /** Each decision that has an id, as its repeats are answered. */
  clicks: Array<{ thread: string; click: string; made: Told }>
  calls: StoredCall[]
  /** The threads of others, with the roles of their messages. */
  foreign: Array<{ thread: string; roles: string[] }>
}

/** A call in history, with everything that history says became of it. */
export interface StoredCall {
  thread: string
  run: string
  /** What became of its run. */
  status: string
  call: string
  tool: string
  args: unknown
  /** In how many messages it is asked for. */
  asked: number
  outcomes: StoredOutcome[]
}

export interface StoredOutcome {
  state: string
  result?: unknown
  error?: string
  reason?: string
}

export interface DecisionEvidence extends Evidence {
  truth: Truth
}

interface StoredPart {
  type: string
  toolInvocation?: { toolCallId: string; toolName: string; args: unknown; state: string; result?: unknown; errorText?: string; approval?: { reason?: string } }
}

export function readTruth(database: string, resourceId: string): Truth {
  const db = new DatabaseSync(database, { readOnly: true, timeout: 60_000 })
  try {
    const records = db.prepare(`
      SELECT t.id AS thread, m.id, m.options FROM heed_mailbox m JOIN heed_threads t ON t.key = m.thread
      WHERE m.id GLOB 'decision:*' OR m.id GLOB 'decided:*' ORDER BY t.key, m.ord`).all().map(({ thread, id, options }) => ({
      thread: String(thread), id: String(id), made: (JSON.parse(String(options)) as { made: Told }).made,
    }))
    const named = (prefix: string) => records.filter(({ id }) => id.startsWith(prefix)).map(({ thread, id, made }) => ({ thread, made, id: id.slice(prefix.length) }))
    return {
      made: named('decided:').map(({ thread, id, made }) => ({ ...made, thread, approvalId: id })),
      clicks: named('decision:').map(({ thread, id, made }) => ({ thread, click: id, made })),
      calls: callsIn(db),
      foreign: db.prepare(`
        SELECT t.id AS thread, json_group_array(m.role) AS roles FROM heed_threads t JOIN heed_messages m ON m.thread = t.key
        WHERE t.resource_id <> ? GROUP BY t.key`).all(resourceId).map(({ thread, roles }) => ({ thread: String(thread), roles: JSON.parse(String(roles)) as string[] })),
    }
  } finally {
    db.close()
  }
}

function callsIn(db: DatabaseSync): StoredCall[] {
  const rows = db.prepare(`
    SELECT t.id AS thread, m.run_id AS run, r.status, m.content FROM heed_messages m JOIN heed_threads t ON t.key = m.thread
    LEFT JOIN heed_runs r ON r.thread = m.thread AND r.run_id = m.run_id WHERE m.content LIKE '%tool-invocation%' ORDER BY t.key, m.seq`).all()
  const calls = new Map<string, StoredCall>()
  for (const { thread, run, status, content } of rows) {
    for (const { toolInvocation } of (JSON.parse(String(content)) as { parts: StoredPart[] }).parts) {
      if (!toolInvocation) continue
      const { toolCallId, toolName: tool, args, state, result, errorText, approval } = toolInvocation
      const key = `${String(thread)} ${toolCallId}`
      const call = calls.get(key) ?? { thread: String(thread), run: String(run), status: String(status), call: toolCallId, tool, args, asked: 0, outcomes: [] }
      calls.set(key, call)
      if (state === 'call') call.asked++
      else call.outcomes.push({ state, ...(result === undefined ? {} : { result }), ...(errorText === undefined ? {} : { error: errorText }), ...(approval?.reason === undefined ? {} : { reason: approval.reason }) })
    }
  }
  return [...calls.values()]
}
