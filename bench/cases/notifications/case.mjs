export const notifications = {
  name: 'notifications',
  title: 'Notifications into the inbox, and out of it',
  about:
    'On `file:` databases. Ingress: 2,000 notifications of low priority to 100 idle threads, 50 at a time, each with a ' +
    '`dedupeKey` and a payload, then 500 one after the other; per second, until they are stored: for Heed flushed to disk ' +
    '(`stored`), for the peer committed. Dispatch: 400 due notifications, each on its own idle thread; per second, until all are ' +
    'marked as delivered and every model that they wake was called. `cold`: the first 100 notifications of the process, one after the ' +
    'other until each is committed, in milliseconds.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: { full: { cold: 100, warmup: 200, atOnce: 2_000, width: 50, inTurn: 500, due: 400 }, quick: { cold: 50, warmup: 50, atOnce: 500, width: 50, inTurn: 100, due: 100 } },
  comparisons: [
    { measure: 'ingress, 50 at once/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'ingress, in turn/s', of: 'heed', to: 'peer' },
    { measure: 'ingress, in turn and committed/s', of: 'heed', to: 'peer' },
    { measure: 'ingress cpu', of: 'heed', to: 'peer' },
    { measure: 'cold ingress', of: 'heed', to: 'peer' },
    { measure: 'cold ingress cpu', of: 'heed', to: 'peer' },
    { measure: 'dispatch/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'dispatch cpu', of: 'heed', to: 'peer' },
  ],
}
