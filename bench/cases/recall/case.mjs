export const recall = {
  name: 'recall',
  title: 'Recall by vectors: a stored message, and a search',
  about:
    'Messages of 18 words are saved to threads of one resource on a `file:` database, with an embedder that answers at once with made-up vectors of 384 numbers, ' +
    'until all have their vectors; then searches of all threads of the resource by words and vectors (the peer: by vectors), each for the four best messages. ' +
    'Milliseconds for each message and each search; CPU of all threads of the process. The first search is that of the process that saved.',
  sides: ['heed', 'peer'],
  rounds: { full: 3, quick: 1 },
  input: { full: { messages: 2_000, warmup: 5, searches: 40 }, quick: { messages: 1_000, warmup: 3, searches: 10 } },
  comparisons: [
    { measure: 'message, cpu', of: 'peer', to: 'heed', atLeast: 1 },
    { measure: 'message, wall', of: 'peer', to: 'heed', atLeast: 1 },
    { measure: 'search, cpu', of: 'peer', to: 'heed', atLeast: 1 },
    { measure: 'search, wall', of: 'peer', to: 'heed', atLeast: 1 },
    { measure: 'first search, wall', of: 'peer', to: 'heed' },
  ],
}
