import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { Channel, Contacts, directChannel, type DirectChannel, type InboundMessage } from '../../src/channel/index.ts'
import { Agent, Heed, silentLogger, type AgentConfig, type HeedConfig, type Logger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type Script, type ScriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { texts } from '../thread/said.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-watch-'))
const open: Heed[] = []
let files = 0
afterEach(async () => {
  await Promise.all(open.splice(0).map((heed) => heed.close()))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

export const target = { threadId: 'login', resourceId: 'ada' }
export const code = { type: 'string', pattern: '^[0-9]{6}$', maxLength: 6 } as const

export interface Setting {
  script: Script
  judge: Script
  annotator?: Script
  /** The kind of the channel, and its id. */
  channel?: [kind: string, id: string]
  contacts?: Contacts
  clock?: Clock
  /** A database that an earlier process used. */
  file?: string
  logger?: Logger
  agent?: Partial<AgentConfig>
  policies?: HeedConfig['policies']
}

export interface Watching {
  heed: Heed
  agent: Agent
  adapter: DirectChannel
  model: ScriptedModel
  judging: ScriptedModel
  file: string
}

/** An agent whose thread waits for messages of one channel, on a database file. */
export function watching({ script, judge, annotator, channel: [kind, id] = ['sms', 'phone'], contacts, clock, logger, agent: more, policies, ...given }: Setting): Watching {
  const adapter = directChannel({ kind })
  const model = scriptedModel(script)
  const judging = scriptedModel(judge)
  const agent = new Agent({ id: 'assistant', instructions: 'Help.', model, watches: { model: judging }, ...more } as AgentConfig)
  const channel = new Channel({
    id, adapter, resourceId: 'ada', contacts: contacts ?? new Contacts([{ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100' }] }]),
    ...(annotator === undefined ? {} : { annotator: scriptedModel(annotator) }),
  })
  const file = given.file ?? join(folder, `${++files}.db`)
  const storage = new LibSQLStore({ url: `file:${file}`, ...(clock && { clock }) })
  const heed = opened({ agents: { assistant: agent }, storage, channels: [channel], logger: logger ?? silentLogger, ...(clock && { clock }), ...(policies && { policies }) })
  return { heed, agent, adapter, model, judging, file }
}

/** Closed after the test. */
export function opened(config: HeedConfig): Heed {
  const heed = new Heed(config)
  open.push(heed)
  return heed
}

export function message(providerId: string, text: string, address = '+15550100'): InboundMessage {
  return { providerId, sender: { address, verified: true }, text }
}

export function call(toolName: string, input: unknown): ScriptedStep {
  return { toolCalls: [{ toolName, input }] }
}

/** The signals of watches in the last prompt of a model, in order. */
function watchSignals(model: ScriptedModel): string[] {
  return texts(model.calls.at(-1)?.prompt ?? []).filter((text) => text.startsWith('user: ') && text.includes('<watch'))
}

/** The reasons of the signals of watches in the last prompt of a model, in order. */
export function reasons(model: ScriptedModel): string[] {
  return watchSignals(model).map((text) => / reason="(\w+)"/.exec(text)?.[1] ?? '')
}

/** Their results, as they are written there. */
export function results(model: ScriptedModel): Array<string | undefined> {
  return watchSignals(model).map((text) => /\nresult: (.*)<\/watch>/.exec(text)?.[1])
}
