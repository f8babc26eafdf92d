import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { gate } from '../thread/said.ts'
import { served, thread } from './serving.ts'

const found = await findProgram('curl')

it.skipIf('missing' in found)(`[H2.5] curl --no-buffer shows each chunk when it is published${whySkipped(found)}`, async () => {
  const hold = gate()
  const model = scriptedModel([{ text: ['First ', 'words.'] }, { text: 'Later.', gate: hold.promise }])
  const { server, ask } = await served({ guide: new Agent({ id: 'guide', model }) })
  const child = spawn('path' in found ? found.path : '', ['--no-buffer', '--silent', '--show-error', '-X', 'POST', `${server.url}/api/agents/guide/threads/subscribe`, '-H', 'Content-Type: application/json', '-d', JSON.stringify(thread)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const until = async (part: string) => {
    for (;;) {
      const { done, value } = await lines.next()
      if (done) throw new Error(`curl ended before it showed ${part}`)
      expect(value).toMatch(/^$|^: \w|^data: \{.*\}$/)
      if (value.includes(part)) return
    }
  }
  await until(': connected')
  await ask('/agents/guide/send-message', { json: { message: 'One', ...thread } })
  await until('"type":"finish"')
  await ask('/agents/guide/send-message', { json: { message: 'Two', ...thread } })
  // Shown while the model is still silent: nothing in between holds it back.
  await until('"type":"data-user-message"')
  await expect.poll(() => model.callCount).toBe(2)
  hold.open()
  await until('"type":"finish"')
})
