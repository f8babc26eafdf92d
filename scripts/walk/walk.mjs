// The files and functions that three scenarios execute, measured by V8's precise coverage: a send to a running thread until it is
// delivered, a send to an idle thread until its run has begun, and the takeover of a run whose process was killed in a tool.
// `npm run walk` prints a table; `npm run walk -- --files` also lists the files and their functions. Each scenario runs three times, and
// what ran each time counts: heartbeats, sweeps and checkpoints of the database may fall into one of them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commonTo, coverage } from './coverage.mjs'
import { desk, target } from './desk.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const listed = process.argv.includes('--files')

const scenarios = [
  ['send to a running thread, until `delivered`', running],
  ['send to an idle thread, until `woke`', idle],
  ['takeover after SIGKILL in a tool, from start() to the end of the run', takeover],
]

console.log('| scenario | files | functions | files of at most 60 lines | lines in those files |\n|---|---|---|---|---|')
for (const [name, measure] of scenarios) {
  const { files, functions, small, lines } = commonTo([await measure(), await measure(), await measure()])
  console.log(`| ${name} | ${files.length} | ${functions} | ${small} | ${lines.toLocaleString('en-US')} |`)
  if (listed) for (const file of files) console.log(`  ${relative(root, file.path)}: ${file.functions.join(', ')}`)
}

/** The thread is in a tool; the send is delivered when the tool has ended. */
async function running() {
  return withFile(async (file) => {
    const { heed, agent, inTool, release } = desk(file)
    await warmUp(agent)
    agent.sendMessage('Begin.', target)
    await inTool()
    const measured = await coverage(root, async () => {
      const receipt = agent.sendMessage('Go by train.', target)
      await receipt.stored
      release()
      const { action } = await receipt.outcome
      if (action !== 'delivered') throw new Error(`expected delivered, found ${action}`)
    })
    await heed.close()
    return measured
  })
}

/** The model holds, so that the walk ends where the model is called. */
async function idle() {
  return withFile(async (file) => {
    const { heed, agent, release } = desk(file, { slowModel: true })
    await warmUp(agent)
    const measured = await coverage(root, async () => {
      const receipt = agent.sendMessage('Begin.', target)
      await receipt.stored
      const { action } = await receipt.outcome
      if (action !== 'woke') throw new Error(`expected woke, found ${action}`)
    })
    release()
    await heed.close()
    return measured
  })
}

async function takeover() {
  return withFile(async (file) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL('victim.mjs', import.meta.url)), file], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    // The lease of the process that was killed ends by its own clock; this process waits for that as any other would.
    const { heed, agent } = desk(file)
    const watching = await agent.subscribeToThread(target)
    const measured = await coverage(root, async () => {
      await heed.start()
      for await (const { type } of watching.stream) if (type === 'finish' || type === 'error') break
    })
    await heed.close()
    return measured
  })
}

/** A first turn on another thread: what is opened, prepared, checked and resolved once per process is not part of the walk. */
async function warmUp(agent) {
  const thread = { resourceId: target.resourceId, threadId: 'warm-up' }
  await agent.sendMessage('Hello', thread).stored
  await agent.generate('Hello', { memory: { resource: thread.resourceId, thread: thread.threadId } })
}

async function withFile(work) {
  const folder = await mkdtemp(join(tmpdir(), 'heed-walk-'))
  try {
    return await work(`file:${join(folder, 'walk.db')}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
