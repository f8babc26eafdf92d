export const memory = {
  name: 'memory',
  title: '100,000 threads, each woken once',
  about:
    'One message to each of 100,000 new threads, a few hundred at a time, on one `file:` database, with history; an instant model ' +
    'answers in one delta. Memory of the process when all threads are idle: after the first thousand, after ten thousand, and ' +
    'after all; `grown` is the difference between first and last. `rss` is measured after a garbage collection that also returns ' +
    'the pages that V8 reserves for new objects; `plain gc` after one that keeps them: their number depends on the recent load of ' +
    'the process and not on threads. Megabytes.',
  sides: ['heed'],
  rounds: { full: 2, quick: 1 },
  input: { full: { marks: [1_000, 10_000, 100_000], atOnce: 200 }, quick: { marks: [1_000, 10_000], atOnce: 200 } },
  comparisons: [
    { measure: 'rss grown', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'heap grown', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'rss grown, plain gc', of: 'heed', unit: ' MB' },
  ],
}
