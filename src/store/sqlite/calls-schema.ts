/** Calls that wait, by their thread: what they bring has ids that nobody may take meanwhile. */
export const callsSchema = `
  CREATE INDEX heed_mailbox_calls ON heed_mailbox (thread, ord) WHERE open = 1 AND bound_to IS NOT NULL;
`
