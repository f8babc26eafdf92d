export const readAll = {
  name: 'read-all',
  title: 'All 4,000 messages of a thread',
  about:
    '`recall({ perPage: false })` of a thread of 4,000 messages on a `file:` database. Milliseconds; wall is the median of ' +
    'several reads, CPU that of one of them.',
  sides: ['heed', 'peer'],
  rounds: { full: 3, quick: 1 },
  input: { full: { messages: 4_000, reads: 3 }, quick: { messages: 4_000, reads: 1 } },
  comparisons: [
    { measure: 'wall', of: 'peer', to: 'heed', atLeast: 50 },
    { measure: 'cpu', of: 'peer', to: 'heed', atLeast: 50 },
  ],
}
