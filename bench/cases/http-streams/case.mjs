export const httpStreams = {
  name: 'http-streams',
  title: '1,000 subscriptions over HTTP',
  about:
    '1,000 open streams of server-sent events on one process, ten for each of 100 threads in ten groups; each group produces 50 ' +
    "events per second, so 5,000 per second are sent. All runs are stored on a `file:` database. Latency from the model's output " +
    'to its receipt in another process, in milliseconds; CPU of the server in percent of one core; memory per connection in kB, ' +
    'while all are open and idle.',
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
