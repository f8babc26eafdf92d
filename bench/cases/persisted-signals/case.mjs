export const persistedSignals = {
  name: 'persisted-signals',
  title: '1,000 signals stored on an idle thread',
  about:
    'Signals that are stored without waking the agent, on a `file:` database: all at once, then one after the other. Signals per ' +
    'second, until the last is stored: for Heed flushed to disk, so that it survives a power loss; for the peer committed. CPU in ' +
    'microseconds per signal, sent at once. Both sides have stored 5,000 before. `inversions`: signals that are stored before one ' +
    'that was sent earlier.',
  sides: ['heed', 'peer'],
  rounds: { full: 9, quick: 2 },
  input: { full: { signals: 1_000, batches: 5, warmup: 5_000 }, quick: { signals: 1_000, batches: 2, warmup: 1_000 } },
  comparisons: [
    { measure: 'at once/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'cpu', of: 'heed', to: 'peer' },
    { measure: 'in turn/s', of: 'heed', to: 'peer' },
    { measure: 'inversions', of: 'heed', atMost: 0 },
  ],
}
