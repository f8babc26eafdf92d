export const processors = {
  name: 'processors',
  title: 'Ten processors that do nothing',
  about:
    'A message to an idle thread to the end of its run, on a `file:` database with history on and an instant model that answers in 10 pieces: without processors and with ten that look at input, at each step and at the result and change nothing. All in turns within one process, in every order as often, two agents of each kind; all CPU of the process in milliseconds a turn, collections of garbage included. `async` has ten whose hooks are async functions, `streaming` ten that also look at every chunk.',
  sides: ['heed'],
  rounds: { full: 9, quick: 2 },
  input: { full: { warmup: 1_200, blocks: 48, turns: 40 }, quick: { warmup: 200, blocks: 12, turns: 20 } },
  comparisons: [
    { measure: 'ten over none', of: 'heed', atMost: 1.1 },
    { measure: 'async over none', of: 'heed' },
    { measure: 'streaming over none', of: 'heed' },
  ],
}
