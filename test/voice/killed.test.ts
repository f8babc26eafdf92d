import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

it('[Z2.7] a conversation whose process is killed in a sentence is on the thread, in order, and goes on as text in another process', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-talk-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'heed.db')
  const child = spawn(process.execPath, [join(import.meta.dirname, 'talking-process.ts'), file], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said: string[] = []
  for await (const line of createInterface(child.stdout)) {
    said.push(line)
    if (line === 'Three.') break
  }
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  expect(said).toEqual(['One.', 'Two.', 'Three.'])

  const model = scriptedModel(() => 'By text.')
  const agent = new Agent({ id: 'guide', model })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })
  onTestFinished(() => heed.close())
  await heed.start()
  const scope = { threadId: 'call', resourceId: 'user-1' }
  // The run of the killed process is taken over, and answers the message.
  await expect.poll(() => model.callCount, { timeout: 90_000 }).toBe(1)
  await expect.poll(() => agent.activeRun(scope)).toBeNull()
  await agent.generate('And now?', { memory: { thread: 'call', resource: 'user-1' } })
  const { messages } = await (await agent.getMemory()).recall({ ...scope, perPage: false })
  const told = messages.map(({ role, content }) => [role === 'assistant' ? 'agent' : 'user', content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('')])
  expect(told).toEqual([['user', 'Hi.'], ['agent', 'One. Two.'], ['user', 'More.'], ['agent', 'By text.'], ['user', 'And now?'], ['agent', 'By text.']])
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toMatch(/Hi\..*One\. Two\..*More\..*By text\..*And now\?/)
})
