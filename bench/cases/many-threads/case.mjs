export const manyThreads = {
  name: 'many-threads',
  title: '200 threads at once',
  about:
    'A message to each of 200 new threads in one go, on one `file:` database with history on; an instant model answers in 10 pieces. Turns a second, until every thread has finished; CPU in milliseconds a turn.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: { full: { threads: 200, batches: 4 }, quick: { threads: 200, batches: 2 } },
  comparisons: [
    { measure: 'turns/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'cpu', of: 'heed', to: 'peer' },
  ],
}
