import { expect, it } from 'vitest'
import type { Chunk } from '../../src/index.ts'
import { isType, soon } from '../thread/said.ts'
import { member, type Member } from './cluster.ts'
import { newFile } from '../new-file.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const below = { resourceId: 'user-1', threadId: 'child:thread-1/call-one' }

const log = async (of: Member): Promise<Chunk[]> => (await of.ask('log', 'log')) ?? []

/** What the agent below said, as the thread above shows it. */
const nested = (chunks: readonly Chunk[]): Chunk[] =>
  chunks.flatMap((chunk) => (chunk.type === 'tool-output' && 'payload' in chunk ? [chunk.payload.output as Chunk] : []))
const textOf = (chunks: readonly Chunk[]): string => chunks.flatMap((chunk) => (chunk.type === 'text-delta' && 'payload' in chunk ? [chunk.payload.text] : [])).join('')
const words = (count: number) => Array.from({ length: count }, (_, index) => `sub-${index} `).join('')

const saidTwo = (chunks: Chunk[]) => textOf(chunks) === words(2)

/**
 * A lead has asked a guide; the process of both went. The guide goes on in one process, half of what it says said, and the lead in another.
 */
async function apart(asked: string, begun: (chunks: Chunk[]) => boolean): Promise<{ lead: Member; guide: Member }> {
  const file = newFile()
  const [first, guide] = await Promise.all([member(file, 'lead', 'guide'), member(file, 'guide')])
  await first.ask('send', `one ask ${asked}`, { ...thread, agentId: 'lead' })
  await first.ask('subscribe', 'log', thread)
  await soon(async () => begun(nested(await log(first)))).toBe(true)
  await first.ask('close')
  await soon(async () => guide.ask('runsHere', below.threadId)).toBe(true)
  const lead = await member(file, 'lead')
  await lead.ask('subscribe', 'log', thread)
  return { lead, guide }
}

it('[R9.4] the output of an agent in another process than the caller\'s is in the stream above as it is published, each word once', async () => {
  const { lead, guide } = await apart('sub say 6 door', saidTwo)
  await soon(async () => textOf(nested(await log(lead)))).toBe(words(2))
  expect((await guide.ask('activeRun', below))?.status).toBe('running')
  await guide.ask('open', 'door')
  await soon(async () => (await log(lead)).some(isType('finish'))).toBe(true)
  const said = nested(await log(lead))
  expect(textOf(said)).toBe(words(6))
  expect(said.map(({ type }) => type).filter((type) => type !== 'text-delta')).toEqual(['step-start', 'response-metadata', 'text-start', 'text-end', 'step-finish', 'finish'])
  expect(new Set(said.map(({ runId }) => runId)).size).toBe(1)
  expect((await lead.ask('recall', below.threadId)).map(({ role }) => role)).toEqual(['user', 'assistant'])
})

it('[R9.4] when that process ends too, the stream above has the step from which the answer is repeated', async () => {
  const { lead, guide } = await apart('sub say 6 door', saidTwo)
  await soon(async () => textOf(nested(await log(lead)))).toBe(words(2))
  await guide.ask('close')
  await soon(async () => nested(await log(lead)).some(isType('data-run-resumed'))).toBe(true)
  await lead.ask('open', 'door')
  await soon(async () => (await log(lead)).some(isType('finish'))).toBe(true)
  const said = nested(await log(lead))
  const again = said.slice(said.findLastIndex(isType('data-run-resumed')))
  expect(again[0]).toMatchObject({ data: { step: 0 } })
  expect(textOf(again)).toBe(words(6))
  expect(again.at(-1)?.type).toBe('finish')
  expect(textOf(said.slice(0, said.findIndex(isType('data-run-resumed'))))).toBe(words(2))
})

it('[R9.4] [R9.2] what it waits for there is asked above, with what is shown of it, and the answer lets both go on', async () => {
  const { lead, guide } = await apart('sub tool question door', (chunks) => chunks.some(isType('tool-call')))
  await soon(async () => (await lead.ask('activeRun', thread))?.status).toBe('running')
  await guide.ask('open', 'door')
  await soon(async () => (await log(lead)).some(isType('tool-call-suspended'))).toBe(true)
  const waits = (await log(lead)).find(isType('tool-call-suspended'))
  expect(waits).toMatchObject({ payload: { toolCallId: 'call-one', suspendPayload: { question: 'Which?' }, child: { threadId: below.threadId, toolName: 'question' } } })
  await lead.ask('approve', { ...thread, approved: true, resumeData: 'this one' }, 'lead')
  await soon(async () => (await log(lead)).some(isType('finish'))).toBe(true)
  expect(JSON.stringify(await lead.ask('recall', below.threadId))).toContain('answered this one')
})
