export const processors = {
  name: 'processors',
  title: 'Ten processors that do nothing',
  about:
    'A message to an idle thread, to the end of its run, on a `file:` database, with history, with an instant model that answers ' +
    'in 10 deltas: without processors, and with ten that read the input, each step and the result and change nothing. All ' +
    'variants alternate within one process, in every order equally often, with two agents of each kind; CPU of the whole process ' +
    'in milliseconds per turn, including garbage collection. `async`: ten processors whose hooks are async functions; ' +
    '`streaming`: ten that also read every chunk.',
  sides: ['heed'],
  rounds: { full: 9, quick: 2 },
  input: { full: { warmup: 1_200, blocks: 48, turns: 40 }, quick: { warmup: 200, blocks: 12, turns: 20 } },
  comparisons: [
    { measure: 'ten over none', of: 'heed', atMost: 1.1 },
    { measure: 'async over none', of: 'heed' },
    { measure: 'streaming over none', of: 'heed' },
  ],
}
