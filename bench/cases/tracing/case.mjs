export const tracing = {
  name: 'tracing',
  title: 'What tracing costs',
  about:
    'A run of two steps with a tool on a thread in memory, with an instant model that answers in 50 pieces. `off`: as it is installed, no OpenTelemetry SDK registered. `without` and `without-too`: the same build with a look for an SDK that is a constant and finds none; both are the same, and what lies between them is noise. `on`: an SDK that makes every span. Milliseconds a run. Where no SDK is registered, all that is done for traces is to look for one: `looks over a run` is the share of a run that this takes.',
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
