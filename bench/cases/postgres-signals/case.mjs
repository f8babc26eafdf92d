export const postgresSignals = {
  name: 'postgres-signals',
  title: '1,000 signals stored on an idle thread, on PostgreSQL',
  about:
    'As `persisted-signals`, on a PostgreSQL server of its own for each side, with 8 connections and every commit flushed. `raw`: the driver alone, ' +
    'which writes the rows of the same signals, one transaction each.',
  sides: ['heed', 'peer', 'raw'],
  rounds: { full: 5, quick: 1 },
  input: { full: { signals: 1_000, batches: 3, warmup: 2_000 }, quick: { signals: 100, batches: 1, warmup: 100 } },
  comparisons: [
    { measure: 'at once/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'at once/s', of: 'heed', to: 'raw' },
    { measure: 'in turn/s', of: 'heed', to: 'peer' },
    { measure: 'inversions', of: 'heed', atMost: 0 },
  ],
}
