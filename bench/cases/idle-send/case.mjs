export const idleSend = {
  name: 'idle-send',
  title: 'A message to an idle thread, to the end of its run',
  about:
    'A subscribed thread on a `file:` database with history on; each message wakes it, an instant model answers in 10 pieces. Wall is the median time from the send to the `finish` chunk, CPU all of the process a turn. Both sides are measured after 1,500 turns, when the engine has compiled what they use. Milliseconds.',
  sides: ['heed', 'peer'],
  rounds: { full: 7, quick: 2 },
  input: { full: { warmup: 1_500, turns: 1_000 }, quick: { warmup: 20, turns: 50 } },
  comparisons: [
    { measure: 'wall', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'first chunk', of: 'heed', to: 'peer' },
  ],
}
