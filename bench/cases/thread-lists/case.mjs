export const threadLists = {
  name: 'thread-lists',
  title: 'Lists of threads, by resource and metadata, among 1,000,000',
  about:
    'A page of 20 threads of one resource on a `file:` database, in either order, with and without a metadata filter: among ' +
    '10,000 threads, and then among all. Each resource has 1,000 threads; one in ten has the requested value. CPU of a page in ' +
    'milliseconds.',
  sides: ['heed'],
  rounds: { full: 2, quick: 1 },
  input: { full: { first: 10_000, all: 1_000_000, pages: 300 }, quick: { first: 10_000, all: 50_000, pages: 50 } },
  comparisons: [
    { measure: 'created, all over first', of: 'heed', atMost: 1.5 },
    { measure: 'updated, all over first', of: 'heed', atMost: 1.5 },
    { measure: 'metadata by creation, all over first', of: 'heed', atMost: 1.5 },
    { measure: 'metadata by last change, all over first', of: 'heed', atMost: 1.5 },
  ],
}
