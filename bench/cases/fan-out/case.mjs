export const fanOut = {
  name: 'fan-out',
  title: '20,000 chunks to one and to 100 subscribers',
  about:
    'One run on a `file:` database, with history; an instant model answers in 20,000 deltas. Chunks per second, from the send ' +
    'until every subscriber has the last one, the median of several runs; CPU in microseconds per chunk.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: {
    full: { chunks: 20_000, audiences: [{ subscribers: 1, runs: 5 }, { subscribers: 100, runs: 3 }] },
    quick: { chunks: 5_000, audiences: [{ subscribers: 1, runs: 3 }, { subscribers: 100, runs: 1 }] },
  },
  comparisons: [
    { measure: 'chunks/s to 1', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'chunks/s to 100', of: 'heed', to: 'peer', atLeast: 15 },
    { measure: 'cpu to 1', of: 'heed', to: 'peer' },
    { measure: 'cpu to 100', of: 'heed', to: 'peer' },
  ],
}
