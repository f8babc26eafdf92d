export const commits = {
  name: 'commits',
  title: 'How long a transaction keeps the event loop',
  about:
    'Messages to 500 threads of one `file:` database, repeatedly, all at once; an instant model answers in 10 deltas. Every ' +
    'transaction is timed from its begin to the end of its commit; it blocks the event loop for that time. `cpu` is the CPU time ' +
    "of the event loop's thread in that interval; the rest is waiting for the disk or for other programs on the machine. " +
    'Milliseconds.',
  sides: ['heed'],
  rounds: { full: 5, quick: 1 },
  input: { full: { threads: 500, turns: 40, warmup: 4 }, quick: { threads: 500, turns: 10, warmup: 2 } },
  comparisons: [
    { measure: 'p99.9', of: 'heed', atMost: 10, unit: ' ms' },
    { measure: 'p99.9, cpu', of: 'heed', atMost: 10, unit: ' ms' },
    { measure: 'p50', of: 'heed' },
    { measure: 'longest', of: 'heed' },
  ],
}
