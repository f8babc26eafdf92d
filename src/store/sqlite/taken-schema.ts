/** A run knows the places of the signals that it took and that are still its own; only what waits is found by an index of its own. */
export const takenSchema = `
  ALTER TABLE heed_runs ADD COLUMN taken TEXT;
  UPDATE heed_runs SET taken = (
    SELECT group_concat(m.ord || '-' || m.ord) FROM heed_mailbox m WHERE m.thread = heed_runs.thread AND m.open = 1 AND m.state = 'taken')
  WHERE run_id = (SELECT t.run_id FROM heed_threads t WHERE t.key = heed_runs.thread AND t.begun = 1);
  UPDATE heed_mailbox SET open = NULL WHERE open = 1 AND state = 'taken';
`
