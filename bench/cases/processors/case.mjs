export const processors = {
  name: 'processors',
  title: 'Ten processors that do nothing',
  about:
    'A message to an idle thread to the end of its run, on a `file:` database with history on and an instant model that answers in 10 pieces: without processors and with ten that look at input, at each step and at the result and change nothing. In turns within one process, warmed up in turns and in every order as often; CPU in milliseconds a turn. `streaming` has ten that also look at every chunk.',
  sides: ['heed'],
  rounds: { full: 7, quick: 2 },
  input: { full: { warmup: 600, blocks: 30, turns: 40 }, quick: { warmup: 200, blocks: 10, turns: 20 } },
  comparisons: [
    { measure: 'ten over none', of: 'heed', atMost: 1.1 },
    { measure: 'streaming over none', of: 'heed' },
  ],
}
