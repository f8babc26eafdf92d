export const httpSend = {
  name: 'http-send',
  title: 'send-message over HTTP, with storing',
  about:
    'The same load generator, in a separate process, for both servers: 64 connections with one request each at a time, for a few ' +
    'seconds, on a `file:` database, with history. `persisted`: messages to 100 idle threads that wake no agent. `woken`: each ' +
    'message starts a thread and its run; an instant model answers in 10 deltas. `cold`: the first 100 `persisted` requests of the process, one after the other. Requests per second until the last message and ' +
    'the last answer are stored; latency of the response in milliseconds; CPU of the server in milliseconds per request.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: { full: { cold: 100, warmMs: 3_000, forMs: 5_000, connections: 64, threads: 100 }, quick: { cold: 100, warmMs: 1_000, forMs: 2_000, connections: 64, threads: 100 } },
  comparisons: [
    { measure: 'persisted/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'woken/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'persisted cpu', of: 'heed', to: 'peer' },
    { measure: 'woken cpu', of: 'heed', to: 'peer' },
    { measure: 'persisted p99', of: 'heed', to: 'peer' },
    { measure: 'woken p99', of: 'heed', to: 'peer' },
    { measure: 'cold p50', of: 'heed', to: 'peer' },
    { measure: 'cold cpu', of: 'heed', to: 'peer' },
  ],
}
