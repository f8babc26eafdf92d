import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import type { ModelConfig, ModelId } from '../run/model/model.ts'
import { LibSQLStore } from '../store/sqlite/index.ts'
import { converse } from './demo-conversation.ts'
import { demoScript } from './demo-script.ts'
import { style, ThreadView } from './render.ts'

const usage = `npm start -- [--headless | --studio] [--model provider/model] [--fast] [--port PORT]

  --headless  play a conversation as text; also the default without a terminal
  --studio    serve Studio; also the default on a terminal
  --model     the model to use, such as openai/gpt-5.5; otherwise one whose key is in the environment
  --fast      the scripted model, without pauses
  --port      the port of Studio; otherwise the first free one from 4111`

/** The environment variables with keys of providers, and the model that each of them selects. */
const keys: Array<[variable: string, model: ModelId]> = [
  ['OPENAI_API_KEY', 'openai/gpt-5.5'],
  ['ANTHROPIC_API_KEY', 'anthropic/claude-sonnet-4-6'],
]

interface Choice {
  model: ModelConfig
  why: string
}

function chooseModel(named: string | undefined, fast: boolean): Choice {
  if (named !== undefined) return { model: named, why: `${named}.` }
  const [variable, model] = fast ? [] : (keys.find(([variable]) => process.env[variable]) ?? [])
  if (model) return { model, why: `${model}, because ${variable} is set.` }
  return { model: demoScript(fast ? 0 : 25), why: `a script. To see a real model, set ${keys.map(([key]) => key).join(' or ')}.` }
}

function introduction(why: string): string {
  return `${style.title('Heed: agent threads that listen')}

See an agent check a release with tools, and stream its answers. While its tests run, a user sends it a message, which
enters at the next step. A queued message starts a run of its own. The deployment needs your approval.

${style.note('Model')}  ${why}
${style.note('Next')}   docs/agents.md, docs/threads.md, and the programs in examples/
       (npm run build, then npx node examples/quickstart.ts)`
}

/** Some terminals report no width. */
function lineLength(columns = 0): number {
  return columns < 40 ? 110 : Math.min(columns, 110)
}

async function main(signal: AbortSignal): Promise<void> {
  const { values } = parseArgs({
    options: {
      headless: { type: 'boolean', default: false }, studio: { type: 'boolean', default: false }, fast: { type: 'boolean', default: false },
      model: { type: 'string' }, port: { type: 'string' }, help: { type: 'boolean' },
    },
  })
  if (values.help) return console.log(usage)
  const { model, why } = chooseModel(values.model, values.fast)
  const { stdin, stdout } = process
  if (values.studio || (!values.headless && stdin.isTTY && stdout.isTTY)) return serveStudio(model, why, { ...values, signal })
  console.log(introduction(why))

  const view = new ThreadView((text) => void stdout.write(text), lineLength(stdout.columns))
  const approve = async (question: string): Promise<boolean | undefined> => {
    if (stdin.isTTY && stdout.isTTY) return askYesNo(view.prompt(`${question} [y/n]`), signal)
    view.line('asks', 'asks', question, '(approved: there is no terminal to ask)')
    return true
  }
  const folder = await mkdtemp(join(tmpdir(), 'heed-demo-'))
  try {
    const storage = new LibSQLStore({ url: `file:${join(folder, 'demo.db')}` })
    await converse({ model, storage, workMs: values.fast ? 0 : 700, view, approve, signal })
  } finally {
    view.end()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Serves Studio with the demo until Ctrl-C. */
async function serveStudio(
  model: ModelConfig, why: string, { fast, port, signal }: { fast: boolean; port?: string; signal: AbortSignal },
): Promise<void> {
  const [{ serveStudioDemo }, { studio }] = await Promise.all([import('./studio-demo/studio-demo.ts'), import('../studio/index.ts')])
  const folder = await mkdtemp(join(tmpdir(), 'heed-demo-'))
  try {
    const storage = new LibSQLStore({ url: `file:${join(folder, 'demo.db')}` })
    const server = await serveStudioDemo({
      storage, studio: studio(), testMs: fast ? 50 : 2_000, deltaMs: fast ? 0 : 25,
      ...(typeof model === 'string' ? { model } : {}), ...(port === undefined ? {} : { port: Number(port) }),
    })
    console.log(`${style.title('Heed Studio')}  ${server.studioUrl}

Open it in a browser: a tour of six clicks leads through the demo. Ctrl-C ends it.
${style.note('Model')}  ${why}
${style.note('Text')}   npm start -- --headless plays a conversation in this terminal instead
${style.note('Next')}   docs/studio.md`)
    await new Promise((resolve) => signal.aborted ? resolve(undefined) : signal.addEventListener('abort', resolve, { once: true }))
    await server.close()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const stop = new AbortController()
process.once('SIGINT', () => {
  process.exitCode = 130
  stop.abort()
  process.once('SIGINT', () => process.exit(130))
})
// The reader of the output may stop reading: `npm start | head`.
process.stdout.on('error', () => stop.abort())

try {
  await main(stop.signal)
} catch (error) {
  console.error(style.problem(error instanceof Error ? error.message : String(error)))
  process.exitCode = 1
}

/** Asks on the terminal until the answer is yes or no. False when the input ends, undefined when the signal aborts. */
async function askYesNo(question: string, signal: AbortSignal): Promise<boolean | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // In raw mode the terminal sends Ctrl-C as a character; it becomes the signal again.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('no\n')))
  try {
    for (;;) {
      const answer = await Promise.race([terminal.question(question, { signal }), ended])
      if (answer.endsWith('\n')) process.stdout.write(answer)
      if (/^\s*y(es)?\s*$/i.test(answer)) return true
      if (/^\s*no?\s*$/i.test(answer)) return false
    }
  } catch (error) {
    if (!signal.aborted) throw error
    process.stdout.write('\n')
    return undefined
  } finally {
    terminal.close()
  }
}
