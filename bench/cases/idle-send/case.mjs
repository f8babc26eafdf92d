export const idleSend = {
  name: 'idle-send',
  title: 'A message to an idle thread, to the end of its run',
  about:
    'A thread with a subscriber on a `file:` database, with history; each message wakes it, and an instant model answers in 10 ' +
    'deltas. Wall is the median time from the send to the `finish` chunk, CPU that of the whole process per turn. Both sides are ' +
    'measured after 1,500 turns, when the JavaScript engine has compiled the code in use. `cold` is the mean of the first 100 turns ' +
    'of the process, from the first send to a thread that does not exist yet. Milliseconds.',
  sides: ['heed', 'peer'],
  rounds: { full: 7, quick: 2 },
  input: { full: { cold: 100, warmup: 1_500, turns: 1_000 }, quick: { cold: 20, warmup: 20, turns: 50 } },
  comparisons: [
    { measure: 'wall', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 10 },
    { measure: 'first chunk', of: 'heed', to: 'peer' },
    { measure: 'cold wall', of: 'heed', to: 'peer', atMost: 1 / 5 },
    { measure: 'cold cpu', of: 'heed', to: 'peer', atMost: 1 / 4 },
  ],
}
