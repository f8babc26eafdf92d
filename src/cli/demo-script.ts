import { scriptedModel } from '../testing/index.ts'
import type { ScriptedModel, ScriptedStep } from '../testing/index.ts'

/** The messages of the user in the demo. */
export const userMessages = {
  first: 'Can 2.1.0 go out? If it can, deploy it.',
  steer: 'Leave the beta channel out: its certificate has expired.',
  followUp: 'Now write one line about it for the team.',
}

/** The model of the demo without a key of a provider. Its answers depend on its prompt. */
export function demoScript(deltaMs: number): ScriptedModel {
  return scriptedModel(({ prompt }) => next(JSON.stringify(prompt)), { modelId: 'demo-script', pace: { deltaMs } })
}

function next(prompt: string): ScriptedStep {
  const declined = prompt.includes('"execution-denied"')
  if (prompt.includes(userMessages.followUp)) return { text: declined ? news.declined : news.live }
  if (declined) return { text: 'All right, nothing was deployed. 2.1.0 stays ready for when you want it.' }
  if (prompt.includes('"live"')) return { text: '2.1.0 is live on stable. Beta stays on 2.0.4 until its certificate is renewed.' }
  const version = '2.1.0'
  if (!prompt.includes('"passed"')) {
    return {
      text: "I'll run the tests and read what changed.",
      toolCalls: [{ toolName: 'run_tests', input: { version } }, { toolName: 'read_changelog', input: { version } }],
    }
  }
  const steered = prompt.includes(userMessages.steer)
  return {
    text: `All 214 tests pass, and the changes are small. ${steered ? plan.stable : plan.both}`,
    toolCalls: [{ toolName: 'deploy', input: { version, channels: steered ? ['stable'] : ['stable', 'beta'] } }],
  }
}

const plan = {
  stable: 'As you ask, I leave beta out: I want to deploy 2.1.0 to stable only.',
  both: 'I want to deploy 2.1.0 to both channels.',
}

const news = {
  live: '2.1.0 is out on stable: search is faster, and exports keep their time zone.',
  declined: '2.1.0 is tested and ready, and was held back today.',
}
