export const longThreads = {
  name: 'long-threads',
  title: 'A turn on threads of 100, 10,000 and 1,000,000 messages',
  about:
    'A message, to the end of its run, with `lastMessages: 10`, on one `file:` database with all three threads; an instant model ' +
    'answers. The threads alternate, so that other load on the machine affects them equally. Milliseconds per turn, CPU of all ' +
    'threads of the process.',
  sides: ['heed'],
  rounds: { full: 3, quick: 1 },
  input: { full: { sizes: [100, 10_000, 1_000_000], warmup: 30, turns: 200 }, quick: { sizes: [100, 10_000, 50_000], warmup: 10, turns: 30 } },
  comparisons: [
    { measure: 'cpu, longest over shortest', of: 'heed', atMost: 1.2 },
    { measure: 'cpu, middle over shortest', of: 'heed', atMost: 1.2 },
    { measure: 'wall, longest over shortest', of: 'heed' },
  ],
}
