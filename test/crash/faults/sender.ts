import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { isHeedError } from '../../../src/base/errors.ts'
import { Agent, Heed, silentLogger } from '../../../src/index.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { scriptedModel } from '../../../src/testing/index.ts'

/**
 * Sends signals to databases that something is wrong with, or that go wrong when the parent says so, and reports what became of each. It
 * closes a Heed before it opens the next, and after the last plan it has to end by itself.
 */
export interface SenderPlan {
  database: string
  /** Sent before the parent receives that all is well. */
  before: number
  /** Sent after the parent said that it has done its worst. */
  after: number
  bytes: number
  busyTimeout: number
  /** Open files until the process may open no more, before the first send and until the last ones. */
  exhaust?: boolean
}

export interface SenderReport {
  stored: string[]
  refused: Array<{ id: string; code: string; message: string; retryable: boolean }>
  outcomes: Record<string, string>
  closing: string
}

async function send(agent: Agent, id: string, bytes: number, report: SenderReport): Promise<void> {
  const contents = `${id} ${'.'.repeat(bytes)}`
  const receipt = agent.sendMessage({ contents, id }, { threadId: 't', resourceId: 'r' })
  try {
    await receipt.stored
    report.stored.push(id)
  } catch (error) {
    const { code, message, retryable } = isHeedError(error) ? error : { code: 'unnamed', message: String(error), retryable: false }
    report.refused.push({ id, code, message, retryable })
  }
  report.outcomes[id] = (await receipt.outcome).action
}

/** Takes all file descriptors that the process may have. Returns them. */
function exhausted(): number[] {
  const files: number[] = []
  try {
    for (;;) files.push(openSync('/dev/null', 'r'))
  } catch {
    return files
  }
}

async function perform({ database, before, after, bytes, busyTimeout, exhaust }: SenderPlan): Promise<void> {
  const agent = new Agent({ id: 'clerk', model: scriptedModel(() => 'Noted.') })
  const heed = new Heed({ agents: { clerk: agent }, storage: new LibSQLStore({ url: `file:${database}`, busyTimeout }), logger: silentLogger })
  const report: SenderReport = { stored: [], refused: [], outcomes: {}, closing: 'well' }
  const sendSome = async (name: string, count: number) => {
    for (let index = 0; index < count; index++) await send(agent, `${name}-${index}`, bytes, report)
  }
  if (exhaust) await heed.start()
  else await sendSome('before', before)
  process.send?.('ready')
  await once(process, 'message')
  const files = exhaust ? exhausted() : []
  await sendSome('after', after)
  process.send?.('sent')
  await once(process, 'message')
  for (const file of files) closeSync(file)
  await sendSome('again', 3)
  try {
    await heed.close()
  } catch (error) {
    report.closing = isHeedError(error) ? error.code : String(error)
  }
  process.send?.(report)
}

for (;;) {
  const [plan] = (await once(process, 'message')) as [SenderPlan | 'end']
  if (plan === 'end') break
  await perform(plan)
}
process.disconnect()
