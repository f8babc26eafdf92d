
    import { createScorer } from 'heed/scorers'
    const one = createScorer({ id: 'one', description: 'd' }).generateScore(() => 1)
    export const evals = { all: { target: (text) => text, data: [{ input: 'a' }], scorers: [{ scorer: one, threshold: 1 }] } }
  