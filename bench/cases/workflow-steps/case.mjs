export const workflowSteps = {
  name: 'workflow-steps',
  title: 'A step of a workflow',
  about:
    'Runs of a workflow of 20 steps in series, each a function that adds 1, one run after the other, to the end of each: with the runs in memory, and on ' +
    'a `file:` database, where both engines store what each step gave before the next one begins. `function` calls the same functions without an engine. ' +
    'CPU of the whole process and wall time, in milliseconds a step.',
  sides: ['heed', 'peer'],
  rounds: { full: 7, quick: 2 },
  input: { full: { warmup: 60, runs: 200 }, quick: { warmup: 10, runs: 30 } },
  comparisons: [
    { measure: 'stored, cpu', of: 'heed', to: 'peer', atMost: 1 },
    { measure: 'stored, wall', of: 'heed', to: 'peer', atMost: 1 },
    { measure: 'in memory, cpu', of: 'heed', to: 'peer', atMost: 1 },
    { measure: 'in memory, wall', of: 'heed', to: 'peer' },
    { measure: 'function, cpu', of: 'heed' },
  ],
}
