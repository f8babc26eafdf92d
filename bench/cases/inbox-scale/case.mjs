export const inboxScale = {
  name: 'inbox-scale',
  title: 'An inbox with 1,000, 100,000 and 1,000,000 records that wait',
  about:
    'A `file:` database for each, with its records on 10,000 threads and due at various times, filled by a process of its own. One process then works with all three, in turns and back and forth, so that whatever else the machine does meets them alike. Each process has practised on another database before. Ingress: to any of the threads, 50 at a time, each with a `dedupeKey`. Dispatch: what is due wakes idle threads, to the end of their runs. A second, by the median turn; rates are compared turn by turn, each with the one beside it, and the median of that is told. Microseconds of CPU for each, of all turns, all threads of the process and the copying of the log included. Next due: milliseconds for one look, the median of a hundred. Memory: RSS of the process that filled it, in MB, after a collection that gives back what V8 keeps for objects to come.',
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
