export const manyThreads = {
  name: 'many-threads',
  title: '200 threads at once',
  about:
    'One message to each of 200 new threads, all at once, on one `file:` database, with history; an instant model answers in 10 ' +
    'deltas. Turns per second, until every thread has finished; CPU in milliseconds per turn.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: { full: { threads: 200, batches: 4 }, quick: { threads: 200, batches: 2 } },
  comparisons: [
    { measure: 'turns/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'cpu', of: 'heed', to: 'peer' },
  ],
}
