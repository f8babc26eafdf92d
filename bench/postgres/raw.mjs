import pg from 'pg'
import { newServer } from './database.mjs'

const tables = `
  CREATE TABLE threads (key bigserial PRIMARY KEY, id text UNIQUE, resource text, status text, epoch bigint, owner text, seq bigint, at bigint);
  CREATE INDEX ON threads (resource, at); CREATE INDEX ON threads (owner) WHERE status <> 'idle';
  CREATE TABLE mail (key bigserial PRIMARY KEY, thread bigint, ord bigint, id text, state text, rows text, UNIQUE (thread, ord), UNIQUE (id, thread));
  CREATE TABLE runs (key bigserial PRIMARY KEY, thread bigint, run text, status text, UNIQUE (run, thread));
  CREATE TABLE messages (key bigserial PRIMARY KEY, thread bigint, seq bigint, id text, role text, at bigint, content text, UNIQUE (thread, seq), UNIQUE (id, thread))`

/** `pg` alone: the rows of a turn and of a stored signal, in as many transactions, each with one trip that locks and reads and one that writes. */
export async function rawOnPostgres() {
  const server = await newServer()
  const pool = new pg.Pool({ connectionString: server.url, max: 8 })
  await pool.query(tables)
  const content = JSON.stringify({ format: 2, parts: [{ type: 'text', text: 'Hello' }] })
  const transaction = async (id, write) => {
    const client = await pool.connect()
    try {
      const answers = await client.query(`BEGIN; SELECT key, seq FROM threads WHERE id = '${id}' FOR NO KEY UPDATE;
        SELECT id, role, content FROM messages WHERE thread = (SELECT key FROM threads WHERE id = '${id}') ORDER BY seq DESC LIMIT 20`)
      const { key, seq } = answers[1].rows[0]
      await client.query(`${write(key, Number(seq))}; COMMIT`)
    } finally {
      client.release()
    }
  }
  let count = 0
  return {
    server,
    create: (id) => pool.query(`INSERT INTO threads (id, resource, status, epoch, seq, at) VALUES ('${id}', 'resource', 'idle', 0, 0, 0)`),
    /** A signal that is stored as a message. */
    store: (id, text = content) => transaction(id, (key, seq) => `
      INSERT INTO mail (thread, ord, id, state, rows) VALUES (${key}, ${seq + 1}, 's-${++count}', 'consumed', '[]');
      INSERT INTO messages (thread, seq, id, role, at, content) VALUES (${key}, ${seq + 1}, 'm-${count}', 'signal', 1, '${text}');
      UPDATE threads SET seq = seq + 1, at = ${count} WHERE key = ${key}`),
    async turn(id) {
      const run = `r-${++count}`
      await transaction(id, (key, seq) => `
        INSERT INTO mail (thread, ord, id, state, rows) VALUES (${key}, ${seq + 1}, '${run}', 'taken', '${content}');
        INSERT INTO runs (thread, run, status) VALUES (${key}, '${run}', 'running');
        INSERT INTO messages (thread, seq, id, role, at, content) VALUES (${key}, ${seq + 1}, 'q-${run}', 'user', 1, '${content}');
        UPDATE threads SET seq = seq + 1, status = 'running', epoch = epoch + 1, owner = 'me', at = ${count} WHERE key = ${key}`)
      await transaction(id, (key, seq) => `
        INSERT INTO messages (thread, seq, id, role, at, content) VALUES (${key}, ${seq + 1}, 'a-${run}', 'assistant', 1, '${content}');
        UPDATE mail SET state = 'consumed' WHERE id = '${run}' AND thread = ${key}; UPDATE runs SET status = 'finished' WHERE run = '${run}' AND thread = ${key};
        UPDATE threads SET seq = seq + 1, status = 'idle', owner = NULL, at = ${count} WHERE key = ${key}`)
    },
  }
}
