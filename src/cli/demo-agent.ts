import { Agent } from '../agent/agent.ts'
import { sleep, systemClock } from '../base/clock.ts'
import type { ModelConfig } from '../run/model/model.ts'
import { createTool } from '../run/tools/tool.ts'

interface ReleaseDesk {
  model: ModelConfig
  /** How long a tool takes. */
  workMs: number
  /** Called while the tests run, which end after it. */
  whileTestsRun(): Promise<void>
}

/** An agent that checks a release and deploys it. Its tools have no effect. */
export function releaseAgent({ model, workMs, whileTestsRun }: ReleaseDesk) {
  const version = { type: 'string', description: 'Such as 2.1.0.' } as const

  const run_tests = createTool({
    id: 'run_tests',
    description: 'Runs all tests of a version. Takes a while.',
    inputSchema: { type: 'object', properties: { version }, required: ['version'], additionalProperties: false },
    async execute(_, { abortSignal }) {
      await sleep(systemClock, workMs, abortSignal)
      await whileTestsRun()
      await sleep(systemClock, workMs, abortSignal)
      return { passed: 214, failed: 0 }
    },
  })

  const read_changelog = createTool({
    id: 'read_changelog',
    description: 'What changed in a version.',
    inputSchema: { type: 'object', properties: { version }, required: ['version'], additionalProperties: false },
    async execute(_, { abortSignal }) {
      await sleep(systemClock, workMs, abortSignal)
      return ['faster search', 'fix: exports keep their time zone']
    },
  })

  const deploy = createTool({
    id: 'deploy',
    description: 'Deploys a version to channels. Users get it at once.',
    inputSchema: {
      type: 'object',
      properties: { version, channels: { type: 'array', items: { enum: ['stable', 'beta'] }, minItems: 1 } },
      required: ['version', 'channels'],
      additionalProperties: false,
    },
    requireApproval: true,
    async execute(input, { abortSignal }) {
      await sleep(systemClock, workMs, abortSignal)
      const { channels } = input as { channels: string[] }
      return { live: channels }
    },
  })

  return new Agent({
    id: 'release',
    name: 'Release desk',
    instructions: [
      'You look after releases. There are two channels, stable and beta; deploy to both unless a message says otherwise.',
      'Before you deploy, run the tests and read the changelog, both at once. Deploy only what passes.',
      'Say in a short sentence what you do before you call tools. Plain text, no markup.',
    ],
    model,
    tools: { run_tests, read_changelog, deploy },
    defaultOptions: { maxSteps: 8 },
  })
}
