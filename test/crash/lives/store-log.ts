import { DatabaseSync } from 'node:sqlite'
import { steadyNow } from '../journal.ts'

/**
 * A log of what the database held, written by triggers in the transactions of the store themselves: it knows each life of a thread, also
 * those that were deleted or replaced by a restore, whose rows are gone. A restore leaves it alone, since its names are not the store's.
 */
const schema = `
  CREATE TABLE lives_log (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    ms INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    what TEXT NOT NULL, key INTEGER NOT NULL, id TEXT NOT NULL, a, b, c, d);
  CREATE TRIGGER lives_thread_added AFTER INSERT ON heed_threads BEGIN
    INSERT INTO lives_log (what, key, id, a, b) VALUES ('thread', new.key, new.id, new.life, new.epoch);
  END;
  CREATE TRIGGER lives_thread_removed AFTER DELETE ON heed_threads BEGIN
    INSERT INTO lives_log (what, key, id, a) VALUES ('end', old.key, old.id, (SELECT floor FROM heed_epochs));
  END;
  CREATE TRIGGER lives_restored AFTER DELETE ON heed_epochs BEGIN
    INSERT INTO lives_log (what, key, id) VALUES ('restore', 0, '');
  END;
  CREATE TRIGGER lives_floor AFTER UPDATE ON heed_epochs BEGIN
    INSERT INTO lives_log (what, key, id, a) VALUES ('floor', 0, '', new.floor);
  END;
  CREATE TRIGGER lives_epoch AFTER UPDATE OF epoch, life ON heed_threads WHEN old.epoch <> new.epoch OR old.life <> new.life BEGIN
    INSERT INTO lives_log (what, key, id, a, b) VALUES ('epoch', new.key, new.id, new.life, new.epoch);
  END;
  CREATE TRIGGER lives_mail_added AFTER INSERT ON heed_mailbox BEGIN
    INSERT INTO lives_log (what, key, id, a, b, c, d) VALUES ('mail', new.thread, new.id, new.state, new.route, new.run_id, new.step);
  END;
  CREATE TRIGGER lives_mail_changed AFTER UPDATE OF state ON heed_mailbox WHEN old.state <> new.state BEGIN
    INSERT INTO lives_log (what, key, id, a, b, c, d) VALUES ('state', new.thread, new.id, new.state, new.route, new.run_id, new.step);
  END;
  CREATE TRIGGER lives_row_added AFTER INSERT ON heed_messages BEGIN
    INSERT INTO lives_log (what, key, id, a, b, c, d) VALUES ('row', new.thread, new.id, new.message_id, new.role, new.run_id, new.content);
  END;
  CREATE TRIGGER lives_row_changed AFTER UPDATE OF content ON heed_messages WHEN old.content <> new.content BEGIN
    INSERT INTO lives_log (what, key, id, a, b, c, d) VALUES ('row', new.thread, new.id, new.message_id, new.role, new.run_id, new.content);
  END;
  CREATE TRIGGER lives_row_removed AFTER DELETE ON heed_messages BEGIN
    INSERT INTO lives_log (what, key, id) VALUES ('row-removed', old.thread, old.id);
  END;
  CREATE TRIGGER lives_run_added AFTER INSERT ON heed_runs BEGIN
    INSERT INTO lives_log (what, key, id, a) VALUES ('run', new.thread, new.run_id, new.status);
  END;
  CREATE TRIGGER lives_run_changed AFTER UPDATE OF status ON heed_runs WHEN old.status <> new.status BEGIN
    INSERT INTO lives_log (what, key, id, a) VALUES ('run', new.thread, new.run_id, new.status);
  END;`

/** One change of the database. `at` is of the steady clock, exact to a millisecond or two. */
export type LogEvent = { n: number; at: number; key: number; id: string } & (
  | { what: 'thread' | 'epoch'; life: number; epoch: number }
  /** `floor`: the first epoch that a later thread may have. A restore raises it after it has ended and inserted all threads. */
  | { what: 'end' | 'floor'; floor: number }
  | { what: 'restore' }
  | { what: 'mail' | 'state'; state: string; route: string; runId: string | null; step: number | null }
  | { what: 'row'; messageId: string; role: string; runId: string | null; content: string }
  | { what: 'row-removed' }
  | { what: 'run'; status: string }
)

/** Begins to log what happens to a database that has its tables. */
export function installLog(database: string): void {
  const db = new DatabaseSync(database, { timeout: 10_000 })
  try {
    db.exec(schema)
  } finally {
    db.close()
  }
}

export function readLog(database: string): LogEvent[] {
  const db = new DatabaseSync(database, { readOnly: true, timeout: 60_000 })
  // Both clocks are the machine's: their difference is the same in every process.
  const offset = Date.now() * 1000 - steadyNow()
  try {
    return db.prepare('SELECT n, ms, what, key, id, a, b, c, d FROM lives_log ORDER BY n').all().map((row) => eventOf(row as unknown as LogRow, offset))
  } finally {
    db.close()
  }
}

interface LogRow {
  n: number
  ms: number
  what: LogEvent['what']
  key: number
  id: string
  a: unknown
  b: unknown
  c: unknown
  d: unknown
}

function eventOf({ n, ms, what, key, id, a, b, c, d }: LogRow, offset: number): LogEvent {
  const about = { n, at: ms * 1000 - offset, key, id }
  switch (what) {
    case 'thread':
    case 'epoch':
      return { ...about, what, life: Number(a), epoch: Number(b) }
    case 'end':
    case 'floor':
      return { ...about, what, floor: Number(a) }
    case 'restore':
      return { ...about, what }
    case 'mail':
    case 'state':
      return { ...about, what, state: String(a), route: String(b), runId: c as string | null, step: d as number | null }
    case 'row':
      return { ...about, what, messageId: String(a), role: String(b), runId: c as string | null, content: String(d) }
    case 'row-removed':
      return { ...about, what }
    case 'run':
      return { ...about, what, status: String(a) }
  }
}
