export const copies = {
  name: 'copies',
  title: 'A clone of 100,000 messages, and 40 writes at once',
  about:
    'On a `file:` database. `clone`: a thread of 100,000 messages is copied without reading the copy. `mixed`: 40 concurrent ' +
    'saves, deletes and clones of threads with 200 messages. Milliseconds; `stall` is the longest time that the event loop was ' +
    'blocked, without the time in which it was ready and the machine ran other programs (with that time: the rows `with the wait ' +
    'for a processor`).',
  sides: ['heed'],
  rounds: { full: 5, quick: 1 },
  input: { full: { messages: 100_000, writes: 40 }, quick: { messages: 20_000, writes: 40 } },
  comparisons: [
    { measure: 'clone, stall', of: 'heed', atMost: 50, unit: ' ms' },
    { measure: 'mixed, stall', of: 'heed', atMost: 50, unit: ' ms' },
    { measure: 'mixed, wall', of: 'heed', atMost: 500, unit: ' ms' },
    { measure: 'clone, wall', of: 'heed' },
    { measure: 'clone, stall with the wait for a processor', of: 'heed', unit: ' ms' },
    { measure: 'mixed, stall with the wait for a processor', of: 'heed', unit: ' ms' },
  ],
}
