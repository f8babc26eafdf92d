import { expect, onTestFinished } from 'vitest'
import type { AgentConfig, HeedConfig } from '../../src/index.ts'
import type { Script } from '../../src/testing/index.ts'
import { heed, testing } from './walked.ts'

const { Agent, Heed, InMemoryStore, silentLogger } = heed
const { scriptedModel } = testing

/** Shows that options have their effect, or are rejected by name. */
export interface Probe {
  title: string
  run(): Promise<void>
}

/** A test elsewhere that shows the same; its text mentions each of the options. Without a title, the whole file is about them. */
export interface Cited {
  file: string
  title?: string
  covers: Record<string, string>
}

export const thread = { resourceId: 'user-1', threadId: 'thread-1' }
export const memory = { thread: thread.threadId, resource: thread.resourceId }

export function open(config: Partial<AgentConfig> = {}, script: Script = () => 'Fine.', more: Omit<HeedConfig, 'agents'> = {}) {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'guide', model, ...config })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, ...more })
  onTestFinished(() => heed.close())
  const idle = async () => {
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
  }
  /** The text of the last message of a prompt. */
  const lastText = (call = -1) => {
    const content = model.calls.at(call)?.prompt.at(-1)?.content
    return typeof content === 'string' ? content : content?.map((part) => ('text' in part ? part.text : JSON.stringify(part))).join('')
  }
  return { agent, model, heed, idle, lastText }
}

/** A call that must be rejected with the name of an option or field. */
export async function rejects(call: () => unknown, name: string): Promise<void> {
  const error = await (async () => call())().then(() => undefined, (thrown: unknown) => thrown as { message: string; details?: object })
  expect(error, `${name} is rejected`).toBeDefined()
  expect(`${JSON.stringify(error?.details ?? {})} ${error?.message}`).toContain(name.split('.').at(-1))
}
