import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { Agent, Heed, Memory } from '../../src/index.ts'
import { MessageHistory } from '../../src/processors/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** One file under every name that it may be given. The links are there before the file is. */
function spellings(): { folder: string; urls: string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'heed-one-file-'))
  folders.push(folder)
  const file = join(folder, 'a.db')
  mkdirSync(join(folder, 'below'))
  symlinkSync('a.db', join(folder, 'link.db'))
  symlinkSync(folder, join(folder, 'below', 'up'))
  const near = relative(process.cwd(), file)
  return {
    folder,
    urls: [`file:${file}`, `file://${file}`, `file:${near}`, `file:./${near}`, `file:${folder}/below/../a.db`, `file:${folder}/link.db`, `file:${folder}/below/up/a.db`],
  }
}

describe('a file under several names', () => {
  it('[M4.1] is one storage: agents that name it differently run its threads together', async () => {
    const { urls, folder } = spellings()
    const agents = urls.map((url, index) => new Agent({ id: `agent-${index}`, model: scriptedModel(() => `I am ${index}.`), memory: new Memory({ storage: new LibSQLStore({ url }) }) }))
    const heed = new Heed({ agents: Object.fromEntries(agents.map((agent) => [agent.id, agent])), storage: new LibSQLStore({ url: urls[0] ?? '' }) })
    for (const [index, agent] of agents.entries()) await agent.generate(`Hello ${index}.`, { memory: { thread: 't', resource: 'u' } })
    expect(heed.sites.all()).toHaveLength(1)
    for (const agent of agents) {
      const { messages } = await (await agent.getMemory()).recall({ threadId: 't', perPage: false })
      expect(messages).toHaveLength(2 * urls.length)
    }
    await heed.close()
    expect(readdirSync(folder).filter((name) => name.endsWith('.db') && name !== 'link.db')).toEqual(['a.db'])
  })

  it('[M4.1] is the same storage for a memory and its MessageHistory', () => {
    const { urls } = spellings()
    const [first = '', ...others] = urls
    for (const url of others) {
      const make = () => new Agent({ id: 'a', memory: new Memory({ storage: new LibSQLStore({ url: first }) }), inputProcessors: [new MessageHistory({ storage: new LibSQLStore({ url }) })] })
      expect(make).not.toThrow()
    }
    const other = new MessageHistory({ storage: new LibSQLStore({ url: 'file:./another.db' }) })
    expect(() => new Agent({ id: 'a', memory: new Memory({ storage: new LibSQLStore({ url: first }) }), inputProcessors: [other] })).toThrow(expect.objectContaining({ code: 'invalid_agent' }))
  })

  it('[M4.1] in memory is none: each store has its own', async () => {
    const agents = [1, 2].map((index) => new Agent({ id: `agent-${index}`, model: scriptedModel(() => 'Hi.'), memory: new Memory({ storage: new LibSQLStore({ url: ':memory:' }) }) }))
    const heed = new Heed({ agents: Object.fromEntries(agents.map((agent) => [agent.id, agent])) })
    await agents[0]?.generate('Hello.', { memory: { thread: 't', resource: 'u' } })
    expect(await (await agents[1]?.getMemory())?.getThreadById({ threadId: 't' })).toBeNull()
    await heed.close()
  })
})
