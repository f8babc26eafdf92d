export const tracing = {
  name: 'tracing',
  title: 'What tracing costs',
  about:
    'A run of two steps with a tool on a thread in memory, with an instant model that answers in 50 deltas. `off`: as installed, ' +
    'without an OpenTelemetry SDK. `without` and `without-too`: the same build with the lookup of an SDK replaced by a constant; ' +
    'both are identical, and the difference between them is noise. `on`: an SDK that records every span. Milliseconds per run. ' +
    'Without an SDK, the lookup is the only work for traces: `looks over a run` is its share of a run.',
  sides: ['without', 'off', 'without-too', 'on'],
  rounds: { full: 11, quick: 3 },
  input: { full: { warmup: 400, runs: 1_000 }, quick: { warmup: 300, runs: 500 } },
  comparisons: [
    { measure: 'looks over a run', of: 'off', atMost: 0.001 },
    { measure: 'cpu', of: 'off', to: 'without', atMost: 1.05 },
    { measure: 'cpu', of: 'without-too', to: 'without' },
    { measure: 'cpu', of: 'on', to: 'off' },
  ],
}
