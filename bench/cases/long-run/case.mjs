export const longRun = {
  name: 'long-run',
  title: '300 steps in one run',
  about:
    'Each step makes a tool call. The model does not read its prompt, so only the loop itself can grow. `growth` is the CPU time ' +
    'of the last ten steps divided by that of the first ten, the median of several runs in one process. Milliseconds per ten ' +
    'steps.',
  sides: ['heed', 'ai', 'peer'],
  rounds: { full: 5, quick: 2 },
  // As many as give each side a steady median.
  input: {
    full: { steps: 300, warmup: { heed: 50, ai: 10, peer: 2 }, runs: { heed: 300, ai: 30, peer: 4 } },
    quick: { steps: 300, warmup: { heed: 30, ai: 3, peer: 1 }, runs: { heed: 100, ai: 10, peer: 2 } },
  },
  comparisons: [
    { measure: 'growth', of: 'heed', atMost: 1.3 },
    { measure: 'growth', of: 'ai' },
    { measure: 'growth', of: 'peer' },
    { measure: 'last ten', of: 'heed', to: 'ai' },
    { measure: 'last ten', of: 'heed', to: 'peer' },
  ],
}
