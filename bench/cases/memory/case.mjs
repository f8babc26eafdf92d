export const memory = {
  name: 'memory',
  title: '100,000 threads, each woken once',
  about:
    'A message to each of so many new threads, a few hundred at a time, on one `file:` database with history on; an instant model answers in one piece. What the process holds when all of them are idle: after the first thousand, and after all. `rss` is after a collection that also gives back what V8 reserved for young objects and does not use; `plain gc` after one that does not, and so has in it what V8 reserved in the meantime. Megabytes.',
  sides: ['heed'],
  rounds: { full: 2, quick: 1 },
  input: { full: { threads: 100_000, first: 1_000, atOnce: 200 }, quick: { threads: 10_000, first: 1_000, atOnce: 200 } },
  comparisons: [
    { measure: 'rss grown', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'rss grown, plain gc', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'heap grown', of: 'heed' },
  ],
}
