type Query = (text: string) => Promise<{ rows: Array<Record<string, unknown>> }>

/** The thread that gets all messages, and its resource. */
export const longThread = { threadId: 'long', resourceId: 'reader' }

/**
 * Fills the tables of a schema with statements of the server alone: a thread with so many messages that were all answered, and so many other
 * threads of a thousand resources. Triggers count nothing of it: usage is not what is looked at.
 */
export async function seed(query: Query, schema: string, { messages, threads }: { messages: number; threads: number }): Promise<void> {
  const table = (name: string) => `"${schema}".heed_${name}`
  const content = '{"format":2,"parts":[{"type":"text","text":"A line of a conversation that has been going on for years."}]}'
  await query(`SET session_replication_role = replica;
    INSERT INTO ${table('threads')} (key, id, resource_id, created_at, updated_at, epoch, life, next_seq, next_ord, ordinal, turn, title, metadata) VALUES
      (1000000000, '${longThread.threadId}', '${longThread.resourceId}', 1, 1, ${messages}, 0, ${messages + 1}, ${messages / 2 + 1}, ${messages}, ${messages - 1}, '', '{}');
    INSERT INTO ${table('threads')} (key, id, resource_id, created_at, updated_at, epoch, life, title, metadata)
      SELECT 1000000000 + n, 'seeded-' || n, 'resource-' || n % 1000, n, n, 0, 0, '', '{}' FROM generate_series(1, ${threads}) n;
    INSERT INTO ${table('messages')} (thread, seq, id, message_id, role, created_at, ordinal, turn, counted, content)
      SELECT 1000000000, n, 'm-' || n, 'm-' || n, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, n, n, n - 1 + n % 2, 1, '${content}'
      FROM generate_series(1, ${messages}) n;
    INSERT INTO ${table('mailbox')} (thread, ord, id, agent_id, route, kind, state, start_run_id, run_id, step, accepted_at, rows)
      SELECT 1000000000, n, 's-' || n, 'guide', 'wake', 'signal', 'consumed', 'run-' || n, 'run-' || n, 0, n, '[]' FROM generate_series(1, ${messages / 2}) n;
    INSERT INTO ${table('runs')} (thread, resource_id, run_id, agent_id, status, epoch, step, attempts, first_seq, seal_seq, ordinal, started_at, ended_at, started, suspended, options)
      SELECT 1000000000, '${longThread.resourceId}', 'run-' || n, 'guide', 'finished', n, 1, 1, 2 * n, 2 * n, 2 * n, n, n, '[]', '[]', '{}' FROM generate_series(1, ${messages / 2}) n;
    RESET session_replication_role`)
  for (const name of ['threads', 'messages', 'mailbox', 'runs']) await query(`ANALYZE ${table(name)}`)
}
