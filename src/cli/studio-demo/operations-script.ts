import { scriptedModel } from '../../testing/index.ts'
import type { ScriptedModel, ScriptedStep } from '../../testing/index.ts'
import { requests } from './tour.ts'

/** The model of the demo without a key. It answers to what the prompt has since the last request that it knows. */
export function operationsScript(deltaMs: number): ScriptedModel {
  return scriptedModel(({ prompt }) => next(conversation(prompt)), { modelId: 'demo-script', pace: { deltaMs } })
}

/** The prompt without what recall found in other threads. */
function conversation(prompt: readonly unknown[]): string {
  return JSON.stringify(prompt.filter((message) => !JSON.stringify(message).includes('<recalled-messages>')))
}

/** The judge of the demo: a message of the status page with a code matches. */
export function operationsJudge(): ScriptedModel {
  return scriptedModel(({ prompt }) => {
    const text = JSON.stringify(prompt.at(-1))
    const code = /Status page: your code is (\d{6})/.exec(text)?.[1]
    return code === undefined ? 'This message does not match.' : { toolCalls: [{ toolName: 'complete_task', input: { result: code } }] }
  }, { modelId: 'demo-judge' })
}

type Topic = (since: string, prompt: string) => ScriptedStep

function next(prompt: string): ScriptedStep {
  const topics: ReadonlyArray<[mark: string, topic: Topic]> = [
    [requests.ask, release], [requests.followUp, announce], [requests.post, post], ['<notification source', failure],
  ]
  const found = topics.map(([mark, topic]) => ({ at: prompt.lastIndexOf(mark), topic })).filter(({ at }) => at >= 0)
  const [last] = found.toSorted((one, other) => other.at - one.at)
  return last ? last.topic(prompt.slice(last.at), prompt) : unknown
}

const unknown: ScriptedStep = {
  text: [
    'I am a script, and I know the requests of the tour only: ', `“${requests.ask}”, `, `“${requests.followUp}” `,
    `and “${requests.post}” `,
    'Set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` to talk to a real model.',
  ],
}

function release(since: string): ScriptedStep {
  const version = '2.1.0'
  if (since.includes('"execution-denied"')) return { text: 'All right, nothing was deployed. 2.1.0 stays ready for when you want it.' }
  const steered = since.includes(requests.steer)
  if (since.includes('"live"')) return { text: steered ? '2.1.0 is live on **stable**. Beta stays on 2.0.4.' : '2.1.0 is live.' }
  if (!since.includes('"failed"')) {
    return {
      reasoning: 'The tests and the changelog do not depend on each other, so both can run at once.',
      text: "I'll run the tests and read what changed.",
      toolCalls: [{ toolName: 'run_tests', input: { version } }, { toolName: 'read_changelog', input: { version } }],
    }
  }
  return {
    text: `All 214 tests pass, and the changes are small. ${steered ? 'As you ask, I leave beta out.' : 'I want to deploy to both.'}`,
    toolCalls: [{ toolName: 'deploy', input: { version, channels: steered ? ['stable'] : ['stable', 'beta'] } }],
  }
}

function announce(_: string, prompt: string): ScriptedStep {
  if (!prompt.includes('"live"')) return { text: '> 2.1.0 is tested and ready, and was held back today.' }
  return { text: '> 2.1.0 is out: search is faster, and exports keep their time zone.' }
}

function post(since: string): ScriptedStep {
  // A word of its own: ids have digits too.
  const code = /reason=\\"matched\\"[\s\S]*?[^\w-](\d{6})[^\w-]/.exec(since)?.[1]
  if (code !== undefined) {
    return { text: `The code \`${code}\` came, and I posted the release. The other message was not for this login: I never saw it.` }
  }
  if (since.includes('await_signal')) return { text: 'I wait for the code. You can go on meanwhile.' }
  return {
    text: 'I open the login and wait for its code.',
    toolCalls: [
      { toolName: 'open_status_page', input: {} },
      {
        toolName: 'await_signal',
        input: {
          description: 'the login code of the status page', expected_channels: ['sms'], expires_in_minutes: 10, exclusive: true,
          result_schema: { type: 'string', pattern: '^[0-9]{6}$', maxLength: 6 },
        },
      },
    ],
  }
}

function failure(): ScriptedStep {
  return {
    text: [
      'CI failed on main: one test of 214, *export keeps its time zone*.\n\n',
      '- It fails after midnight UTC, so it reads the clock of the machine.\n',
      '- 2.1.0 is not affected: its tests passed.\n\n', 'I suggest to fix the test before the next release.',
    ],
  }
}
