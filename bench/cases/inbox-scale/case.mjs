export const inboxScale = {
  name: 'inbox-scale',
  title: 'An inbox with 1,000, 100,000 and 1,000,000 records that wait',
  about:
    'One `file:` database per size, with its records on 10,000 threads and due at various times, filled by a separate process. ' +
    'One process then uses all three alternately, back and forth, so that other load on the machine affects them equally. Each ' +
    'process has warmed up on another database. Ingress: to any of the threads, 50 at a time, each with a `dedupeKey`. Dispatch: ' +
    'due records wake idle threads, to the end of their runs. Rates are per second, of the median round; each rate is compared ' +
    'with the one measured next to it, and the median ratio is reported. CPU in microseconds per record, over all rounds and all ' +
    'threads of the process, including checkpoints of the log. Next due: milliseconds for one query, the median of a hundred. ' +
    'Memory: RSS of the process that filled the database, in MB, after a garbage collection that returns the pages reserved for ' +
    'new objects.',
  sides: ['heed'],
  rounds: { full: 1, quick: 1 },
  input: {
    full: { sizes: [1_000, 100_000, 1_000_000], threads: 10_000, practice: 40, warmup: 4, turns: 28, ingress: 250, due: 100 },
    quick: { sizes: [1_000, 10_000, 50_000], threads: 1_000, practice: 20, warmup: 2, turns: 12, ingress: 125, due: 50 },
  },
  comparisons: [
    { measure: 'ingress cpu, 1,000,000 over 1,000', of: 'heed', atMost: 1.2 },
    { measure: 'ingress rate, 1,000 over 1,000,000', of: 'heed', atMost: 1.2 },
    { measure: 'ingress cpu, 1,000,000 over 100,000', of: 'heed', atMost: 1.2 },
    { measure: 'ingress rate, 100,000 over 1,000,000', of: 'heed', atMost: 1.2 },
    { measure: 'dispatch cpu, 1,000,000 over 1,000', of: 'heed', atMost: 1.2 },
    { measure: 'dispatch rate, 1,000 over 1,000,000', of: 'heed', atMost: 1.2 },
    { measure: 'dispatch cpu, 1,000,000 over 100,000', of: 'heed', atMost: 1.2 },
    { measure: 'dispatch rate, 100,000 over 1,000,000', of: 'heed', atMost: 1.2 },
    { measure: 'next due, 1,000,000', of: 'heed', atMost: 1, unit: ' ms' },
    { measure: 'memory, 1,000,000 over 1,000', of: 'heed', atMost: 1.2 },
    { measure: 'memory, 1,000,000 over 100,000', of: 'heed', atMost: 1.2 },
  ],
}
