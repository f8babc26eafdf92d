/** The tables of inbound messages, watches and replies: version 2 of the schema. */
export const watchSchema = `
  CREATE TABLE heed_inbounds (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    provider_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    contact_id TEXT,
    contact_since INTEGER NOT NULL DEFAULT 0,
    conversation TEXT,
    content TEXT NOT NULL,
    categories TEXT,
    received_at INTEGER NOT NULL,
    -- When its annotation is due. Null once it is annotated.
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Claims that ended without a report of the process that had them.
    lost INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    -- The exclusive watch that matched it.
    consumed_by TEXT,
    UNIQUE (channel_id, provider_id)
  ) STRICT;
  CREATE INDEX heed_inbounds_due ON heed_inbounds (channel_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_inbounds_resource ON heed_inbounds (resource_id, received_at, seq);
  CREATE INDEX heed_inbounds_received ON heed_inbounds (received_at);

  CREATE TABLE heed_watches (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    -- Tells the thread from a later one with its id.
    thread_created_at INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    mode TEXT NOT NULL,
    exclusive INTEGER NOT NULL,
    may_end INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    max_evaluations INTEGER NOT NULL,
    evaluations INTEGER NOT NULL DEFAULT 0,
    hits INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    -- Messages that were stored at this time or later are considered.
    since INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    -- When its next candidate is to be judged, its claim ends, or it expires. Null once it has ended.
    due_at INTEGER,
    description TEXT NOT NULL,
    criteria TEXT NOT NULL,
    result_schema TEXT
  ) STRICT;
  CREATE INDEX heed_watches_due ON heed_watches (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_watches_resource ON heed_watches (resource_id, id);
  CREATE INDEX heed_watches_open ON heed_watches (resource_id, since) WHERE state = 'open';
  CREATE INDEX heed_watches_thread ON heed_watches (thread_id, id);
  CREATE INDEX heed_watches_ended ON heed_watches (ended_at) WHERE ended_at IS NOT NULL;

  -- Each combination of category, channel and contact that an open watch expects, with '*' for any.
  CREATE TABLE heed_watch_keys (
    resource_id TEXT NOT NULL,
    key TEXT NOT NULL,
    watch INTEGER NOT NULL,
    PRIMARY KEY (resource_id, key, watch)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_watch_keys_watch ON heed_watch_keys (watch);

  -- The categories that open watches expect, with how many watches expect them.
  CREATE TABLE heed_watch_categories (
    resource_id TEXT NOT NULL,
    category TEXT NOT NULL,
    watches INTEGER NOT NULL,
    PRIMARY KEY (resource_id, category)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE heed_watch_candidates (
    watch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    sender_key TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Attempts that failed, or ended without a report.
    failures INTEGER NOT NULL DEFAULT 0,
    categories TEXT NOT NULL,
    value TEXT,
    detail TEXT,
    settled_at INTEGER,
    PRIMARY KEY (watch, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_watch_candidates_open ON heed_watch_candidates (watch, seq) WHERE state IN ('pending', 'claimed');
  CREATE INDEX heed_watch_candidates_inbound ON heed_watch_candidates (seq);
  CREATE INDEX heed_watch_candidates_sender ON heed_watch_candidates (watch, sender_key);

  CREATE TABLE heed_watch_deliveries (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    watch INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    -- 'queued' behind another one of its agent and thread, 'due', 'delivered' or 'failed'.
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    value TEXT,
    seq INTEGER,
    created_at INTEGER NOT NULL,
    -- When it is to be sent, or its claim ends. Null in all states but 'due'.
    due_at INTEGER,
    delivered_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT
  ) STRICT;
  CREATE INDEX heed_watch_deliveries_due ON heed_watch_deliveries (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_watch_deliveries_order ON heed_watch_deliveries (thread_id, agent_id, ord) WHERE state IN ('queued', 'due');
  CREATE INDEX heed_watch_deliveries_watch ON heed_watch_deliveries (watch);

  -- The reply to a message of a channel in mode 'message'.
  CREATE TABLE heed_replies (
    -- That of the message.
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    inbound_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    policies TEXT,
    text TEXT,
    truncated INTEGER NOT NULL DEFAULT 0,
    provider_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Grows with each claim.
    claims INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at INTEGER NOT NULL,
    -- When it is worked on next, or its claim ends. Null while the message waits for others, and when nothing is to be done.
    due_at INTEGER,
    settled_at INTEGER
  ) STRICT;
  CREATE INDEX heed_replies_due ON heed_replies (channel_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_replies_thread ON heed_replies (thread_id, state, seq);
  CREATE INDEX heed_replies_state ON heed_replies (state, seq);
  CREATE INDEX heed_replies_provider ON heed_replies (channel_id, provider_id) WHERE provider_id IS NOT NULL;
`

/**
 * Version 3: what watches need to know of the order of messages, of their annotation, and of replies that are being sent; and the taint of
 * working memory.
 */
export const watchOrderSchema = `
  -- The categories beyond the closed set that its annotator could choose from. Null where it had none.
  ALTER TABLE heed_inbounds ADD COLUMN offered TEXT;
  -- Calls of its annotator that failed.
  ALTER TABLE heed_inbounds ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
  -- The last message that was stored when the watch was registered, and when it ended.
  ALTER TABLE heed_watches ADD COLUMN registered_seq INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE heed_watches ADD COLUMN ended_seq INTEGER;
  UPDATE heed_watches SET
    registered_seq = coalesce((SELECT max(seq) FROM heed_inbounds WHERE received_at < heed_watches.created_at), 0),
    ended_seq = iif(ended_at IS NULL, NULL, coalesce((SELECT max(seq) FROM heed_inbounds WHERE received_at <= heed_watches.ended_at), 0));
  CREATE INDEX heed_watches_later ON heed_watches (resource_id, registered_seq) WHERE state = 'open';
  CREATE INDEX heed_watches_expiry ON heed_watches (expires_at) WHERE state = 'open';
  CREATE INDEX heed_inbounds_order ON heed_inbounds (resource_id, seq);

  -- Whether it waits for the categories of its message, which policies ask for.
  ALTER TABLE heed_watch_candidates ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
  DROP INDEX heed_watch_candidates_open;
  CREATE INDEX heed_watch_candidates_open ON heed_watch_candidates (watch, waiting, seq) WHERE state IN ('pending', 'claimed');
  DROP INDEX heed_watch_candidates_sender;
  CREATE INDEX heed_watch_candidates_sender ON heed_watch_candidates (watch, sender_key)
    WHERE state IN ('pending', 'claimed', 'matched', 'rejected');

  -- Whether a process is sending the reply, and until when a message with its text may be its echo.
  ALTER TABLE heed_replies ADD COLUMN sending INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE heed_replies ADD COLUMN echo_until INTEGER;
  CREATE INDEX heed_replies_sending ON heed_replies (channel_id) WHERE sending = 1;
  CREATE INDEX heed_replies_echo ON heed_replies (channel_id, text) WHERE echo_until IS NOT NULL;
  -- Messages that arrived while a reply was being sent: they are worked on when it is known whether they are its echo.
  CREATE TABLE heed_inbound_holds (
    seq INTEGER NOT NULL,
    reply INTEGER NOT NULL,
    PRIMARY KEY (seq, reply)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_inbound_holds_reply ON heed_inbound_holds (reply);

  -- Where values of working memory came from that senders of messages chose, as JSON.
  ALTER TABLE heed_working_memory ADD COLUMN tainted_by TEXT;
`

/** Version 5: replies have numbers of their own, since a conversation also gets what its thread answers to a watch. */
export const replyNumbersSchema = `
  CREATE TABLE heed_replies_numbered (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    -- The message in whose conversation it is sent.
    seq INTEGER NOT NULL,
    inbound_id TEXT NOT NULL,
    -- The signal whose run writes it: the message, or the delivery of a watch.
    signal_id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    policies TEXT,
    text TEXT,
    truncated INTEGER NOT NULL DEFAULT 0,
    provider_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Grows with each claim.
    claims INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_at INTEGER NOT NULL,
    -- When it is worked on next, or its claim ends. Null while the thread does not have the signal, and when nothing is to be done.
    due_at INTEGER,
    settled_at INTEGER,
    -- Whether a process is sending the reply, and until when a message with its text may be its echo.
    sending INTEGER NOT NULL DEFAULT 0,
    echo_until INTEGER
  ) STRICT;
  INSERT INTO heed_replies_numbered (
    ord, id, seq, inbound_id, signal_id, resource_id, channel_id, agent_id, thread_id, state, reason, policies,
    text, truncated, provider_id, attempts, claims, error, created_at, due_at, settled_at, sending, echo_until)
  SELECT seq, id, seq, inbound_id, inbound_id, resource_id, channel_id, agent_id, thread_id, state, reason, policies,
    text, truncated, provider_id, attempts, claims, error, created_at, due_at, settled_at, sending, echo_until FROM heed_replies;
  DROP TABLE heed_replies;
  ALTER TABLE heed_replies_numbered RENAME TO heed_replies;
  CREATE INDEX heed_replies_message ON heed_replies (seq);
  CREATE INDEX heed_replies_due ON heed_replies (channel_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_replies_thread ON heed_replies (thread_id, state, ord);
  CREATE INDEX heed_replies_state ON heed_replies (state, ord);
  CREATE INDEX heed_replies_provider ON heed_replies (channel_id, provider_id) WHERE provider_id IS NOT NULL;
  CREATE INDEX heed_replies_sending ON heed_replies (channel_id) WHERE sending = 1;
  CREATE INDEX heed_replies_echo ON heed_replies (channel_id, text) WHERE echo_until IS NOT NULL;
`

/** Version 6: the run that registered a watch. What its thread answers goes where that run was answered. */
export const watchRunSchema = `
  ALTER TABLE heed_watches ADD COLUMN run_id TEXT;
`
