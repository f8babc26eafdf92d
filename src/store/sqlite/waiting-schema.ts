/** Runs that wait, by when they began to: that is what is told of them. */
export const waitingSchema = `
  DROP INDEX heed_runs_waiting;
  CREATE INDEX heed_runs_waiting ON heed_runs (agent_id, resource_id, suspended_at) WHERE status = 'suspended';
`
