export const memory = {
  name: 'memory',
  title: '100,000 threads, each woken once',
  about:
    'A message to each of so many new threads, a few hundred at a time, on one `file:` database with history on; an instant model answers in one piece. What the process holds when all of them are idle: after the first thousand, after ten thousand, and after all; `grown` is from the first to the last. `rss` is after a collection that also gives back the pages that V8 keeps for young objects to come. `plain gc` is after one that keeps them: how many those are follows how busy the process was a moment ago, and tells nothing of threads. Megabytes.',
  sides: ['heed'],
  rounds: { full: 2, quick: 1 },
  input: { full: { marks: [1_000, 10_000, 100_000], atOnce: 200 }, quick: { marks: [1_000, 10_000], atOnce: 200 } },
  comparisons: [
    { measure: 'rss grown', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'heap grown', of: 'heed', atMost: 20, unit: ' MB' },
    { measure: 'rss grown, plain gc', of: 'heed', unit: ' MB' },
  ],
}
