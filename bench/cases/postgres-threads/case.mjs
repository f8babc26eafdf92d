export const postgresThreads = {
  name: 'postgres-threads',
  title: '200 threads at once on PostgreSQL',
  about:
    'As `many-threads`, on a PostgreSQL server of its own for each side, with 8 connections, every commit flushed and no checkpoint meanwhile. ' +
    'Round trips, bytes of the server\'s log and its CPU (ms) per turn: of turns one after the other on one thread; one of the round trips of ' +
    'Heed asks, after the turn, whether a notification waits for its end. `raw`: the driver alone, which writes the rows of the same turns.',
  sides: ['heed', 'peer', 'raw'],
  rounds: { full: 5, quick: 1 },
  input: { full: { threads: 200, batches: 4, warm: 20, turns: 100 }, quick: { threads: 50, batches: 2, warm: 3, turns: 10 } },
  comparisons: [
    { measure: 'turns/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'turns/s', of: 'heed', to: 'raw' },
    { measure: 'cpu', of: 'heed', to: 'peer' },
    { measure: 'server cpu', of: 'heed', to: 'peer' },
    { measure: 'round trips', of: 'heed', to: 'peer' },
    { measure: 'log bytes', of: 'heed', to: 'peer' },
    { measure: 'log bytes', of: 'heed', to: 'raw' },
  ],
}
