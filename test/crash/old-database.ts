import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { messageInputToSignal } from '../../src/signals/normalise.ts'
import { signalToRow } from '../../src/signals/row.ts'
import type { Send } from '../../src/store/contract/threads.ts'
import { migrate, migrations } from '../../src/store/sqlite/migrations.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { JournalWriter } from './journal.ts'
import { resourceId } from './load.ts'
import { mark } from './restless-model.ts'

/** How many statements of a migration from `version` a process can die before and after. */
export function migrationMoments(version: number): number {
  // Its begin, its steps, and the one that ends it.
  return 2 * (2 + migrations.length - version)
}

/** In the journals: whoever wrote the old database. */
const elderSlot = 90

/**
 * A database as an earlier version left it: each thread has signals in history and one that waits for an answer. They are noted as sent
 * and confirmed, so that everything that is checked of signals is checked of these.
 */
export async function oldDatabase(folder: string, database: string, version: number, threads: readonly string[]): Promise<void> {
  const journal = new JournalWriter(folder, elderSlot, 0)
  const model = `${database}.new`
  const store = new LibSQLStore({ url: `file:${model}` })
  for (const threadId of threads) {
    for (const [index, kind] of (['persist', 'persist', 'message'] as const).entries()) {
      const id = `old.${index}`
      journal.write({ note: 'send', thread: threadId, id, kind })
      await store.accept([send(threadId, id, kind)])
      await store.flush()
      journal.write({ note: 'stored', thread: threadId, id })
    }
  }
  journal.close()
  await store.close()
  const old = new DatabaseSync(database)
  migrate(old, database, version)
  // What this version has too is written as it would have.
  old.prepare('ATTACH ? AS new').run(model)
  const columnsOf = (table: string, schema: string) => old.prepare('SELECT name FROM pragma_table_info(?, ?)').all(table, schema).map(({ name }) => String(name))
  for (const table of ['heed_threads', 'heed_messages', 'heed_mailbox']) {
    const known = new Set(columnsOf(table, 'main'))
    const columns = columnsOf(table, 'new').filter((name) => known.has(name)).join(', ')
    old.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM new.${table}`)
  }
  old.close()
  for (const end of ['', '-wal', '-shm', '-bus']) rmSync(`${model}${end}`, { force: true, recursive: true })
}

function send(threadId: string, id: string, kind: 'persist' | 'message'): Send {
  const target = { threadId, resourceId }
  const behavior = kind === 'persist' ? 'persist' : undefined
  const signal = messageInputToSignal(`Do ${mark(threadId, id)}.`, { id, now: 0, reservedTags: [] })
  return {
    ...target, agentId: 'worker', id, mode: 'now', ifActive: { behavior: behavior ?? 'deliver' }, ifIdle: { behavior: behavior ?? 'wake' },
    rows: [signalToRow(signal, target)], runId: `run-${id}`, now: Date.now(),
  }
}
