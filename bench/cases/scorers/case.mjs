export const scorers = {
  name: 'scorers',
  title: 'Five scorers that score every run',
  about:
    'A message to an idle thread, to the end of its run, on a `file:` database: without scorers, and with five scorers in code at a sampling of 1.0, which ' +
    'score the runs in the same process meanwhile. Both alternate within one process, in every order equally often, with two agents of each kind; before a ' +
    'block begins, the scores of the one before it are done. `turn` is the median of the wall time of a turn with a model that takes 100 ms for its answer ' +
    'of 10 deltas, `instant turn` with one that takes none, in milliseconds; `cpu` is all CPU of the process a turn with the instant model, scoring included.',
  sides: ['heed'],
  rounds: { full: 5, quick: 1 },
  input: {
    full: { warmup: 8, blocks: 16, turns: 10, instant: { warmup: 12, blocks: 24, turns: 40 } },
    quick: { warmup: 4, blocks: 8, turns: 5, instant: { warmup: 4, blocks: 8, turns: 20 } },
  },
  comparisons: [
    { measure: 'turn, five over none', of: 'heed', atMost: 1.02 },
    { measure: 'instant turn, five over none', of: 'heed' },
    { measure: 'cpu, five over none', of: 'heed' },
  ],
}
