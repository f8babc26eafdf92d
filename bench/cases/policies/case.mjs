export const policies = {
  name: 'policies',
  title: 'A decision of the policies',
  about:
    'Decisions about messages of a tenant with 1, 100 and 495 policies, each a new request, which is not remembered; `again`: the same request, ' +
    'which is. `save` is the check and the save of all policies, once. Milliseconds.',
  sides: ['heed'],
  rounds: { full: 5, quick: 1 },
  input: { full: { warmup: 300, runs: 2_000 }, quick: { warmup: 100, runs: 500 } },
  comparisons: [
    { measure: 'p50, 100 policies', of: 'heed', atMost: 1, unit: ' ms' },
    { measure: '100 over 1', of: 'heed' },
    { measure: 'p50, 495 policies', of: 'heed' },
    { measure: 'p99, 100 policies', of: 'heed' },
    { measure: 'again over new', of: 'heed', atMost: 0.1 },
  ],
}
