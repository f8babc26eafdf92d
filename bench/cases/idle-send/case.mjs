export const idleSend = {
  name: 'idle-send',
  title: 'A message to an idle thread, to the end of its run',
  about:
    'A subscribed thread on a `file:` database with history on; each message wakes it, an instant model answers in 10 pieces. Wall is the median time from the send to the `finish` chunk, CPU all of the process a turn. Milliseconds.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 2 },
  input: { full: { warmup: 300, turns: 300 }, quick: { warmup: 20, turns: 50 } },
  comparisons: [
    { measure: 'wall', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'first chunk', of: 'heed', to: 'peer' },
  ],
}
