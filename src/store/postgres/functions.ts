/** Functions that statements and triggers call. Contents stay text: `jsonb` would change the order of keys and the form of numbers. */
export const functions = `
  CREATE FUNCTION heed_each(list text) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT ROWS 10
    AS $$
    SELECT json_array_elements_text(CASE WHEN json_typeof(list::json) = 'array' THEN list::json ELSE json_build_array(list::json) END)
  $$;

  -- A value of metadata as the index of lists has it: its type and its text.
  CREATE FUNCTION heed_entry(list text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT json_typeof(list::json -> 0) || ':' || (list::json ->> 0) $$;

  CREATE FUNCTION heed_metadata_matches(metadata text, wanted text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT NOT EXISTS (
      SELECT 1 FROM json_each(wanted::json) want LEFT JOIN json_each(metadata::json) have ON have.key = want.key
      WHERE coalesce(json_typeof(have.value), 'null') <> json_typeof(want.value)
        OR (have.value #>> '{}') IS DISTINCT FROM (want.value #>> '{}'))
  $$;

  CREATE FUNCTION heed_clone_of(metadata text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT metadata::json #>> '{clone,sourceThreadId}' $$;

  -- Finds a text by a pattern of GLOB: '*' at both ends, and classes of characters.
  CREATE FUNCTION heed_glob(value text, pattern text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$
  DECLARE
    expression text := '';
    class boolean := false;
    opened int := 0;
    one text;
  BEGIN
    FOR at IN 2 .. length(pattern) - 1 LOOP
      one := substr(pattern, at, 1);
      IF class AND one = ']' AND at > opened + 1 THEN
        expression := expression || ']';
        class := false;
      ELSIF class THEN
        expression := expression || CASE WHEN one ~ '[][\\\\^-]' THEN '\\' || one ELSE one END;
      ELSIF one = '[' THEN
        expression := expression || '[';
        class := true;
        opened := at;
      ELSE
        expression := expression || CASE WHEN one ~ '[[:alnum:][:space:]]' OR ascii(one) > 127 THEN one ELSE '\\' || one END;
      END IF;
    END LOOP;
    RETURN value ~ expression;
  END $$;

  -- Replaces a string of an object, and leaves all other bytes as they are.
  CREATE FUNCTION heed_json_set(content json, path text[], replacement json) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN
    IF json_typeof(content) <> 'object' THEN RETURN content::text; END IF;
    RETURN (SELECT '{' || coalesce(string_agg(to_json(field.key)::text || ':' || CASE
        WHEN field.key <> path[1] THEN field.value::text
        WHEN array_length(path, 1) = 1 THEN replacement::text
        ELSE heed_json_set(field.value, path[2:], replacement) END, ',' ORDER BY field.ordinality), '') || '}'
      FROM json_each(content) WITH ORDINALITY AS field);
  END $$;

  -- The content of a copied row: its ids, and those that it refers to, end with the suffix.
  CREATE FUNCTION heed_copied(content text, role text, id text, suffix text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN
    IF role = 'signal' AND content::json #> '{metadata,signal,id}' IS NOT NULL THEN
      RETURN heed_json_set(content::json, '{metadata,signal,id}', to_json(id || suffix));
    ELSIF role = 'context' AND json_typeof(content::json #> '{metadata,sources}') = 'array' THEN
      RETURN heed_json_set(content::json, '{metadata,sources}', (
        SELECT ('[' || coalesce(string_agg(to_json(source || suffix)::text, ',' ORDER BY nth), '') || ']')::json
        FROM json_array_elements_text(content::json #> '{metadata,sources}') WITH ORDINALITY AS list (source, nth)));
    END IF;
    RETURN content;
  END $$;

  -- Whether the context row quotes one of these messages.
  CREATE FUNCTION heed_quotes_any(content text, ids text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT json_typeof(content::json #> '{metadata,sources}') = 'array' AND EXISTS (
      SELECT 1 FROM json_array_elements_text(content::json #> '{metadata,sources}') quoted WHERE quoted IN (SELECT heed_each(ids)))
  $$;

  -- The slot of a key, for another resource: the fourth of its parts.
  CREATE FUNCTION heed_slot(slot text, resource text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT '[' || string_agg(CASE WHEN nth = 4 THEN to_json(resource) ELSE to_json(part) END::text, ',' ORDER BY nth) || ']'
    FROM json_array_elements_text(slot::json) WITH ORDINALITY AS parts (part, nth)
  $$;

  -- RFC 7396.
  CREATE FUNCTION heed_json_patch(target text, patch text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
  BEGIN
    IF json_typeof(patch::json) <> 'object' THEN RETURN patch; END IF;
    IF json_typeof(target::json) <> 'object' THEN RETURN heed_json_patch('{}', patch); END IF;
    RETURN (
      SELECT '{' || coalesce(string_agg(to_json(field.key)::text || ':' || field.value, ',' ORDER BY field.part, field.nth), '') || '}'
      FROM (
        SELECT 1 AS part, old.ordinality AS nth, old.key, CASE WHEN new.key IS NULL THEN old.value::text
          ELSE heed_json_patch(old.value::text, new.value::text) END AS value
        FROM json_each(target::json) WITH ORDINALITY AS old LEFT JOIN json_each(patch::json) AS new ON new.key = old.key
        WHERE new.key IS NULL OR json_typeof(new.value) <> 'null'
        UNION ALL
        SELECT 2, new.ordinality, new.key, CASE WHEN json_typeof(new.value) = 'object' THEN heed_json_patch('{}', new.value::text)
          ELSE new.value::text END
        FROM json_each(patch::json) WITH ORDINALITY AS new
        WHERE json_typeof(new.value) <> 'null' AND NOT EXISTS (SELECT 1 FROM json_each(target::json) old WHERE old.key = new.key)
      ) AS field);
  END $$;
`

const size = (...columns: string[]) => columns.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ')
const sizes = {
  mailbox: (row: string) => size(`${row}.rows`, `${row}.options`),
  runs: (row: string) => size(`${row}.options`),
  workflow_runs: (row: string) => size(`${row}.head`, `${row}.input`),
  workflow_steps: (row: string) => size(`${row}.content`),
  notifications: (row: string) => size(`${row}.summary`, `${row}.attributes`, `${row}.metadata`, `${row}.payload`),
  schedules: (row: string) => size(`${row}.signal`),
  watches: (row: string) => size(`${row}.description`, `${row}.criteria`, `${row}.result_schema`),
}

/** Counts the rows of a table above 512 bytes in the bytes of their thread. */
const ofThread = (table: 'mailbox' | 'runs' | 'workflow_runs' | 'workflow_steps', columns: string) => {
  const counted = (row: string) => `CASE WHEN ${sizes[table](row)} > 512 THEN ${sizes[table](row)} ELSE 0 END`
  return `
  CREATE FUNCTION heed_${table}_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      UPDATE heed_threads SET bytes = bytes + ${sizes[table]('NEW')} WHERE key = NEW.thread;
    ELSIF TG_OP = 'DELETE' THEN
      UPDATE heed_threads SET bytes = bytes - (${sizes[table]('OLD')}) WHERE key = OLD.thread;
    ELSE
      UPDATE heed_threads SET bytes = bytes + ${counted('NEW')} - ${counted('OLD')} WHERE key = NEW.thread;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_${table}_size_added AFTER INSERT ON heed_${table} FOR EACH ROW
    WHEN (${sizes[table]('NEW')} > 512) EXECUTE FUNCTION heed_${table}_size();
  CREATE TRIGGER heed_${table}_size_changed AFTER UPDATE OF ${columns} ON heed_${table} FOR EACH ROW
    WHEN (${counted('NEW')} <> ${counted('OLD')}) EXECUTE FUNCTION heed_${table}_size();
  CREATE TRIGGER heed_${table}_size_removed AFTER DELETE ON heed_${table} FOR EACH ROW
    WHEN (${sizes[table]('OLD')} > 512) EXECUTE FUNCTION heed_${table}_size();`
}

/** Counts the rows of a table that name their resource. */
const ofResource = (table: 'notifications' | 'schedules' | 'watches') => `
  CREATE FUNCTION heed_${table}_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP <> 'INSERT' THEN PERFORM heed_count(OLD.resource_id, 0, -(${sizes[table]('OLD')})); END IF;
    IF TG_OP <> 'DELETE' THEN PERFORM heed_count(NEW.resource_id, 0, ${sizes[table]('NEW')}); END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_${table}_size_added AFTER INSERT OR DELETE ON heed_${table} FOR EACH ROW EXECUTE FUNCTION heed_${table}_size();
  CREATE TRIGGER heed_${table}_size_changed AFTER UPDATE ON heed_${table} FOR EACH ROW
    WHEN (OLD.resource_id <> NEW.resource_id OR ${sizes[table]('OLD')} <> ${sizes[table]('NEW')})
    EXECUTE FUNCTION heed_${table}_size();`

/** What SQLite's triggers do. None writes rows of another thread, except that a quote goes with what it quotes. */
export const triggers = `
  -- The number of a change of an inbox. The counter is locked until the transaction ends: numbers become visible in their order.
  CREATE FUNCTION heed_change(resource text) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    INSERT INTO heed_notification_changes AS c (resource_id, last) VALUES (resource, 1)
    ON CONFLICT (resource_id) DO UPDATE SET last = c.last + 1 RETURNING last
  $$;

  CREATE FUNCTION heed_count(resource text, threads bigint, bytes bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO heed_usage_changes (resource_id, threads, bytes) SELECT resource, threads, bytes WHERE threads <> 0 OR bytes <> 0
  $$;

  -- Adds changes to heed_usage. Several processes may do it at once.
  CREATE FUNCTION heed_fold_usage(most int) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    WITH taken AS (
      DELETE FROM heed_usage_changes WHERE key IN (SELECT key FROM heed_usage_changes ORDER BY key LIMIT most FOR UPDATE SKIP LOCKED)
      RETURNING resource_id, threads, bytes),
    sums AS (
      SELECT resource_id, sum(threads) AS threads, sum(bytes) AS bytes FROM (
        SELECT resource_id, threads, bytes FROM taken UNION ALL SELECT '', threads, bytes FROM taken) AS both_of GROUP BY resource_id),
    added AS (
      INSERT INTO heed_usage AS u (resource_id, threads, bytes) SELECT resource_id, threads, bytes FROM sums ORDER BY resource_id
      ON CONFLICT (resource_id) DO UPDATE SET threads = u.threads + excluded.threads, bytes = u.bytes + excluded.bytes)
    SELECT count(*) FROM taken
  $$;

  CREATE FUNCTION heed_threads_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      NEW.bytes := ${size('NEW.title', 'NEW.metadata')};
      PERFORM heed_count(NEW.resource_id, 1, NEW.bytes);
      RETURN NEW;
    ELSIF TG_OP = 'DELETE' THEN
      PERFORM heed_count(OLD.resource_id, -1, -OLD.bytes);
      RETURN OLD;
    END IF;
    NEW.bytes := NEW.bytes + ${size('NEW.title', 'NEW.metadata')} - (${size('OLD.title', 'OLD.metadata')});
    IF NEW.resource_id = OLD.resource_id THEN
      PERFORM heed_count(NEW.resource_id, 0, NEW.bytes - OLD.bytes);
    ELSE
      PERFORM heed_count(OLD.resource_id, -1, -OLD.bytes);
      PERFORM heed_count(NEW.resource_id, 1, NEW.bytes);
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER heed_threads_size_added BEFORE INSERT OR DELETE ON heed_threads FOR EACH ROW EXECUTE FUNCTION heed_threads_size();
  CREATE TRIGGER heed_threads_size_changed BEFORE UPDATE ON heed_threads FOR EACH ROW
    WHEN (OLD.bytes <> NEW.bytes OR OLD.title <> NEW.title OR OLD.metadata <> NEW.metadata OR OLD.resource_id <> NEW.resource_id)
    EXECUTE FUNCTION heed_threads_size();

  CREATE FUNCTION heed_threads_described() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP <> 'INSERT' THEN DELETE FROM heed_thread_metadata WHERE thread = OLD.key; END IF;
    IF TG_OP <> 'DELETE' THEN
      INSERT INTO heed_thread_metadata (thread, name, value, of_resource, of_time, of_updated)
      SELECT NEW.key, key, json_typeof(value) || ':' || (value #>> '{}'), NEW.resource_id, NEW.created_at, NEW.updated_at
      FROM json_each(NEW.metadata::json)
      WHERE json_typeof(value) IN ('string', 'number', 'boolean') AND length(value #>> '{}') <= 256 AND length(key) <= 512
      ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_threads_added AFTER INSERT ON heed_threads FOR EACH ROW WHEN (NEW.metadata <> '{}')
    EXECUTE FUNCTION heed_threads_described();
  CREATE TRIGGER heed_threads_changed AFTER UPDATE OF metadata, resource_id ON heed_threads FOR EACH ROW
    WHEN (OLD.metadata <> NEW.metadata OR OLD.resource_id <> NEW.resource_id) EXECUTE FUNCTION heed_threads_described();
  CREATE TRIGGER heed_threads_removed AFTER DELETE ON heed_threads FOR EACH ROW WHEN (OLD.metadata <> '{}')
    EXECUTE FUNCTION heed_threads_described();

  CREATE FUNCTION heed_messages_removed_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE heed_threads t SET bytes = t.bytes - gone.bytes
    FROM (SELECT thread, sum(octet_length(content)) AS bytes FROM removed GROUP BY thread) AS gone WHERE t.key = gone.thread;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_messages_size_removed AFTER DELETE ON heed_messages REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION heed_messages_removed_size();
  CREATE FUNCTION heed_messages_changed_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE heed_threads SET bytes = bytes + octet_length(NEW.content) - octet_length(OLD.content) WHERE key = NEW.thread;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_messages_size_changed AFTER UPDATE OF content ON heed_messages FOR EACH ROW
    WHEN (octet_length(NEW.content) <> octet_length(OLD.content)) EXECUTE FUNCTION heed_messages_changed_size();
  ${ofThread('mailbox', 'rows, options')}
  ${ofThread('runs', 'options')}
  ${ofResource('notifications')}
  ${ofResource('schedules')}
  ${ofResource('watches')}

  CREATE FUNCTION heed_working_memory_size() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    whose text := CASE WHEN TG_OP = 'INSERT' THEN NEW.owner ELSE OLD.owner END;
    added bigint := CASE WHEN TG_OP = 'INSERT' THEN octet_length(NEW.value) ELSE -octet_length(OLD.value) END;
  BEGIN
    IF whose LIKE 't:%' THEN
      UPDATE heed_threads SET bytes = bytes + added WHERE key = substr(whose, 3)::bigint;
    ELSE
      PERFORM heed_count(substr(whose, 3), 0, added);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_working_memory_size_changed AFTER INSERT OR DELETE ON heed_working_memory FOR EACH ROW
    EXECUTE FUNCTION heed_working_memory_size();

  CREATE FUNCTION heed_notifications_forgotten() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM heed_notification_merged WHERE record = OLD.key;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_notifications_removed AFTER DELETE ON heed_notifications FOR EACH ROW EXECUTE FUNCTION heed_notifications_forgotten();

  -- Context rows that quote messages of other threads go with what they quote.
  CREATE FUNCTION heed_quotes_added() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF json_typeof(NEW.content::json #> '{metadata,quotes}') = 'array' THEN
      INSERT INTO heed_quotes (thread, message_id, quoted_by)
      SELECT t.key, quote ->> 'messageId', NEW.key
      FROM json_array_elements(NEW.content::json #> '{metadata,quotes}') quote JOIN heed_threads t ON t.id = quote ->> 'threadId'
      ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_quotes_added AFTER INSERT ON heed_messages FOR EACH ROW WHEN (NEW.role = 'context')
    EXECUTE FUNCTION heed_quotes_added();
  CREATE FUNCTION heed_quotes_removed() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.role = 'context' THEN
      DELETE FROM heed_quotes WHERE quoted_by = OLD.key;
    ELSE
      DELETE FROM heed_messages WHERE key IN (
        SELECT quoted_by FROM heed_quotes WHERE thread = OLD.thread AND message_id = OLD.message_id);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_quotes_removed AFTER DELETE ON heed_messages FOR EACH ROW EXECUTE FUNCTION heed_quotes_removed();
  CREATE FUNCTION heed_quoted_given() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM heed_messages WHERE key IN (SELECT quoted_by FROM heed_quotes WHERE thread = NEW.key);
    DELETE FROM heed_messages WHERE thread = NEW.key AND role = 'context' AND key IN (SELECT quoted_by FROM heed_quotes);
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_quoted_given AFTER UPDATE OF resource_id ON heed_threads FOR EACH ROW
    WHEN (OLD.resource_id <> NEW.resource_id) EXECUTE FUNCTION heed_quoted_given();
`

/** Adds changes to heed_usage. Of several processes that do it at once, each takes what the others have not taken. */
export const foldUsage = `
  CREATE OR REPLACE FUNCTION heed_fold_usage(most int) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    WITH taken AS (
      DELETE FROM heed_usage_changes WHERE ctid = ANY (ARRAY(SELECT ctid FROM heed_usage_changes LIMIT most))
      RETURNING resource_id, threads, bytes),
    sums AS (
      SELECT resource_id, sum(threads) AS threads, sum(bytes) AS bytes FROM (
        SELECT resource_id, threads, bytes FROM taken UNION ALL SELECT '', threads, bytes FROM taken) AS both_of GROUP BY resource_id),
    added AS (
      INSERT INTO heed_usage AS u (resource_id, threads, bytes) SELECT resource_id, threads, bytes FROM sums ORDER BY resource_id
      ON CONFLICT (resource_id) DO UPDATE SET threads = u.threads + excluded.threads, bytes = u.bytes + excluded.bytes)
    SELECT count(*) FROM taken
  $$;
`

/** As the first version, without a call for what every turn does. */
export const threadsSize = `
  CREATE OR REPLACE FUNCTION heed_threads_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      NEW.bytes := ${size('NEW.title', 'NEW.metadata')};
      INSERT INTO heed_usage_changes (resource_id, threads, bytes) VALUES (NEW.resource_id, 1, NEW.bytes);
      RETURN NEW;
    ELSIF TG_OP = 'DELETE' THEN
      PERFORM heed_count(OLD.resource_id, -1, -OLD.bytes);
      RETURN OLD;
    END IF;
    NEW.bytes := NEW.bytes + ${size('NEW.title', 'NEW.metadata')} - (${size('OLD.title', 'OLD.metadata')});
    IF NEW.resource_id <> OLD.resource_id THEN
      PERFORM heed_count(OLD.resource_id, -1, -OLD.bytes);
      PERFORM heed_count(NEW.resource_id, 1, NEW.bytes);
    ELSIF NEW.bytes <> OLD.bytes THEN
      INSERT INTO heed_usage_changes (resource_id, threads, bytes) VALUES (NEW.resource_id, 0, NEW.bytes - OLD.bytes);
    END IF;
    RETURN NEW;
  END $$;
`

const stored = (table: 'workflow_runs' | 'workflow_steps') => `
  (SELECT coalesce(sum(${sizes[table]('r')}), 0) FROM heed_${table} r WHERE r.thread = heed_threads.key AND ${sizes[table]('r')} > 512)`

/** What runs of workflows have stored counts too. */
export const workflowUsage = `
  UPDATE heed_threads SET bytes = bytes + ${stored('workflow_runs')} + ${stored('workflow_steps')}
    WHERE key IN (SELECT thread FROM heed_workflow_runs);
  ${ofThread('workflow_runs', 'head, input')}
  ${ofThread('workflow_steps', 'content')}
`

/** As for other tables of a resource, with one call for all rows that a statement adds. */
export const notificationsAdded = `
  CREATE FUNCTION heed_notifications_added_size() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO heed_usage_changes (resource_id, threads, bytes)
    SELECT resource_id, 0, sum(${sizes.notifications('added')}) FROM added GROUP BY resource_id
    HAVING sum(${sizes.notifications('added')}) <> 0;
    RETURN NULL;
  END $$;
  CREATE TRIGGER heed_notifications_size_added AFTER INSERT ON heed_notifications REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION heed_notifications_added_size();
  CREATE TRIGGER heed_notifications_size_removed AFTER DELETE ON heed_notifications FOR EACH ROW
    EXECUTE FUNCTION heed_notifications_size();
`
