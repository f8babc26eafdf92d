export const httpStreams = {
  name: 'http-streams',
  title: '1,000 subscriptions over HTTP',
  about:
    '1,000 open streams of server-sent events on one process, ten for each of 100 threads in ten groups; each group says 50 events a second, so 5,000 a second go out. All runs are stored on a `file:` database. Latency from the moment the model said something to the moment another process read it, in milliseconds; CPU of the server in percent of one core; memory a connection in kB, while all are open and silent.',
  sides: ['heed'],
  rounds: { full: 3, quick: 1 },
  input: {
    full: { groups: 10, threadsPerGroup: 10, perThread: 10, eventsPerSecond: 50, seconds: 30 },
    quick: { groups: 10, threadsPerGroup: 10, perThread: 10, eventsPerSecond: 50, seconds: 5 },
  },
  comparisons: [
    { measure: 'p50', of: 'heed', unit: ' ms' },
    { measure: 'p99', of: 'heed', unit: ' ms' },
    { measure: 'cpu', of: 'heed', unit: ' %' },
    { measure: 'kB a connection', of: 'heed' },
  ],
}
