export const commits = {
  name: 'commits',
  title: 'How long a transaction keeps the event loop',
  about:
    'Messages to 500 threads of one `file:` database, over and over, all at once; an instant model answers in 10 pieces. Every transaction is timed from its begin to the end of its commit: nothing else happens on the event loop meanwhile. `cpu` is what the thread of the event loop worked in that time; the rest it waited, for the disk or for whatever else the machine did. Milliseconds.',
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
