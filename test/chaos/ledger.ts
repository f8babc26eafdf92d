import { contentsOf, type Ledger, type LedgerThread } from '../crash/ledger.ts'

export type Query = (text: string) => Promise<{ rows: Array<Record<string, unknown>> }>

/** What the database holds, as the checks of test/crash read it. */
export async function readLedger(query: Query, schema: string): Promise<Ledger> {
  const all = async (text: string) => (await query(text.replaceAll('heed_', `"${schema}".heed_`))).rows
  const threads = await all('SELECT key, id, status, epoch, owner FROM heed_threads ORDER BY key')
  const mail = await all(`
    SELECT thread, id, ord, kind, route, state, run_id AS "runId", step FROM heed_mailbox
    WHERE id NOT LIKE 'decision:%' AND id NOT LIKE 'decided:%' AND id NOT LIKE 'decided-call:%' ORDER BY ord`)
  const rows = await all('SELECT thread, id, message_id AS "messageId", seq, role, run_id AS "runId", content FROM heed_messages ORDER BY seq')
  const runs = await all('SELECT thread, run_id AS "runId", status, epoch, attempts FROM heed_runs ORDER BY key')
  const of = (found: Array<Record<string, unknown>>, key: unknown) =>
    found.filter(({ thread }) => thread === key).map(({ thread: _, ...one }) => numbered(one))
  return {
    integrity: 'ok',
    threads: threads.map(({ key, ...thread }) => ({
      ...(numbered(thread) as unknown as Omit<LedgerThread, 'mail' | 'rows' | 'runs'>),
      mail: of(mail, key) as unknown as LedgerThread['mail'],
      rows: of(rows, key).map(({ content, ...row }) => ({ ...(row as unknown as LedgerThread['rows'][number]), ...contentsOf(String(content)) })),
      runs: of(runs, key) as unknown as LedgerThread['runs'],
    })),
  }
}

/** `pg` returns bigint as text. */
function numbered(row: Record<string, unknown>): Record<string, unknown> {
  const numbers = ['epoch', 'ord', 'seq', 'step', 'attempts']
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, numbers.includes(name) && value !== null ? Number(value) : value]))
}

/** What is not at rest yet: threads that run or wait, signals that no run has taken or answered, and transactions that stay open. */
export async function unrest(query: Query, schema: string): Promise<string[]> {
  const { rows } = await query(`
    SELECT t.id || ' is ' || t.status AS what FROM "${schema}".heed_threads t
    WHERE t.status <> 'idle' OR EXISTS (SELECT 1 FROM "${schema}".heed_mailbox m WHERE m.thread = t.key AND m.open = 1)
    UNION ALL SELECT 'a transaction is open: ' || query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'`)
  return rows.map(({ what }) => String(what))
}
