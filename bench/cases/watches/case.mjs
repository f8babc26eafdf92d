export const watches = {
  name: 'watches',
  title: 'Messages that arrive while 100 and 10,000 watches are open',
  about:
    'One `file:` database per size, whose watches expect another channel, contact or category than the messages have, except for ten. ' +
    'One process offers the same 1,000 messages to each alternately, a hundred at a time, and waits until they are stored, annotated by rules, ' +
    'matched and judged by an instant model. CPU: microseconds per message, over all threads of the process. Rate: messages per second. Judged: ' +
    'calls of the model for each message, of which the filters exclude nine in ten. Memory: what the process holds after a garbage ' +
    'collection, in MB, with 10,000 watches more than with 100.',
  sides: ['heed'],
  rounds: { full: 3, quick: 1 },
  input: { full: { sizes: [100, 10_000], turns: 10, batch: 100, warmup: 3 }, quick: { sizes: [100, 2_000], turns: 4, batch: 50, warmup: 1 } },
  comparisons: [
    { measure: 'cpu, 10,000 over 100', of: 'heed', atMost: 1.5 },
    { measure: 'judged, 10,000', of: 'heed', atMost: 0.125 },
    { measure: 'memory, 10,000 more than 100', of: 'heed', atMost: 10, unit: ' MB' },
    { measure: 'rate, 10,000', of: 'heed' },
  ],
}
