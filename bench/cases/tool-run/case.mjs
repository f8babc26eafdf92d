export const toolRun = {
  name: 'tool-run',
  title: 'A run of two steps with a tool',
  about:
    'An instant model calls a tool, then answers in 50 text deltas; the whole stream is read. Nothing is stored. Milliseconds per ' +
    'run.',
  sides: ['heed', 'ai', 'peer'],
  rounds: { full: 7, quick: 2 },
  input: { full: { warmup: 300, runs: 500 }, quick: { warmup: 100, runs: 200 } },
  comparisons: [
    { measure: 'cpu', of: 'heed', to: 'ai', atMost: 1 },
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 5 },
    { measure: 'wall', of: 'heed', to: 'ai' },
    { measure: 'wall', of: 'heed', to: 'peer' },
  ],
}
