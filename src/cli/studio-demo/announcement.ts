import { sleep, systemClock } from '../../base/clock.ts'
import { createScorer } from '../../scorers/index.ts'
import { textOf } from '../../scorers/messages.ts'
import { createStep, createWorkflow } from '../../workflow/index.ts'

const version = { type: 'object', properties: { version: { type: 'string' } }, required: ['version'] } as const
const text = { type: 'string' } as const

/** A workflow to start and to answer in Studio: it writes an announcement, asks, and publishes it. Nothing of it leaves the demo. */
export function announcement(stepMs: number) {
  const collect = createStep({
    id: 'collect', description: 'What changed in the version.', inputSchema: version, outputSchema: { type: 'array', items: text },
    idempotent: true,
    execute: async ({ abortSignal }) => {
      await sleep(systemClock, stepMs, abortSignal)
      return ['faster search', 'fix: exports keep their time zone']
    },
  })
  const write = createStep({
    id: 'write', inputSchema: { type: 'array', items: text }, outputSchema: text, idempotent: true,
    execute: async ({ inputData, getInitData }) => {
      const given = getInitData() as { version: string }
      return `${given.version} is out: ${(inputData as string[]).join('; ')}.`
    },
  })
  const approve = createStep({
    id: 'approve', inputSchema: text, outputSchema: text,
    resumeSchema: { type: 'object', properties: { publish: { type: 'boolean' } }, required: ['publish'] },
    execute: async ({ inputData, resumeData, suspend, bail }) => {
      if (resumeData === undefined) return suspend({ question: 'Publish this?', text: inputData, answer: { publish: true } })
      return (resumeData as { publish: boolean }).publish ? inputData : bail('It was not published.')
    },
  })
  const publish = createStep({
    id: 'publish', inputSchema: text, outputSchema: text, execute: async ({ inputData }) => `Published: ${String(inputData)}`,
  })
  const about = { id: 'announcement', description: 'Announces a version, after you agree.' }
  return createWorkflow({ ...about, inputSchema: version, outputSchema: text })
    .then(collect).then(write).then(approve).then(publish).commit()
}

/** A score of each answer in code: it asks no model. */
export const brevity = createScorer({ id: 'brevity', description: 'Answers of at most 40 words.' })
  .analyze(({ run }) => textOf(run.output).split(/\s+/).filter((word) => word !== '').length)
  .generateScore(({ results }) => Math.min(1, 40 / Math.max(1, results.analyzeStepResult)))
  .generateReason(({ results }) => `${results.analyzeStepResult} words.`)
