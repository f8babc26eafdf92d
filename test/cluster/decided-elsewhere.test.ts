import { describe, expect, it, onTestFinished } from 'vitest'
import { LocalBus } from '../../src/bus/local.ts'
import { Agent, createTool, Heed, silentLogger, type Chunk } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { readUntil } from '../thread/said.ts'

const memory = { thread: 'main', resource: 'user-1' }

/** Two processes on a file, and a run that waits for decisions about two calls of a tool. */
async function waiting() {
  const [file, bus] = [newFile(), new LocalBus()]
  const open = (answers: ScriptedStep[]) => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const agent = new Agent({ id: 'shop', model: scriptedModel(answers), tools: { pay } })
    const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), bus, logger: silentLogger })
    onTestFinished(() => heed.close())
    return agent
  }
  const calls = ['c1', 'c2'].map((toolCallId) => ({ toolName: 'pay', toolCallId }))
  const [here, there] = [open([{ toolCalls: calls }]), open(['Paid both.', { toolCalls: [{ toolName: 'pay', toolCallId: 'c3' }] }])]
  await there.activeRun({ threadId: memory.thread })
  const { runId } = await here.generate('Pay twice.', { memory })
  return { here, there, runId }
}

const typesOf = (chunks: readonly Chunk[]) => chunks.map(({ type }) => type)

describe('[R6.16] the stream of a decision about a run that waits for another one', () => {
  it('has the chunks and the result of the run where another process makes the last decision and continues it', async () => {
    const { here, there, runId } = await waiting()
    const first = await here.approveToolCall({ runId, toolCallId: 'c1' })
    const second = await there.approveToolCall({ runId, toolCallId: 'c2' })
    const [ofFirst, ofSecond] = [await readUntil(first.fullStream, () => false), await readUntil(second.fullStream, () => false)]
    expect(ofFirst).toEqual(ofSecond)
    expect([typesOf(ofFirst)[0], typesOf(ofFirst).at(-1)]).toEqual(['tool-result', 'finish'])
    expect(await Promise.all([first.text, second.text, first.finishReason])).toEqual(['Paid both.', 'Paid both.', 'stop'])
  })

  it('ends as rejected where another process aborts the run', async () => {
    const { here, there, runId } = await waiting()
    const first = await here.approveToolCall({ runId, toolCallId: 'c1' })
    expect(await there.abortRun({ threadId: memory.thread })).toEqual({ aborted: true, runId })
    await expect(first.result).rejects.toMatchObject({ code: 'aborted' })
  })
})
