import { command } from '../shell/command.ts'

export const evaluate = command({
  name: 'eval',
  about: 'runs the evaluations of a file and prints their scores',
  details: 'The file exports evals: options of runEvals() by name. Each result is stored in a folder and compared with the one before.\n'
    + 'Ends with 5 if a threshold or a gate was missed, or if a case failed.',
  examples: ['heed eval', 'heed eval --junit eval.xml', 'heed eval evals/support.ts --only tone', 'heed eval --json | jq .scores'],
  arguments: [{ name: 'FILE', about: 'the module that exports evals; else evals.ts, evals.js or evals.mjs', optional: true }],
  options: {
    only: { about: 'an evaluation to run', value: 'NAME', repeated: true },
    results: { about: 'the folder of the results, else .heed/evals', value: 'FOLDER' },
    concurrency: { about: 'how many cases run at a time, in place of what the file says', value: 'COUNT' },
    junit: { about: 'a file for the results as JUnit XML, which CI systems show', value: 'FILE' },
    'env-file': { about: 'variables of the environment, else .env', value: 'FILE' },
  },
  page: 'docs/scorers.md',
  run: async ({ arguments: [file], options, output }) => {
    const { runEvalFile } = await import('../eval/eval.ts')
    const { only, results, concurrency, junit, 'env-file': envFile } = options
    return runEvalFile({ file, only, results, concurrency, junit, envFile }, output)
  },
})
