import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { thrownBy } from './asking.ts'

const fields = ['inputProcessors', 'outputProcessors', 'defaultOptions', 'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy', 'agents']
const junk: unknown[] = [undefined, null, 3, 'text', true]
const made = (field: string, value: unknown) => new Agent({ id: 'guide', model: scriptedModel(['Hi.'], { loop: true }), [field]: value })

/** The defaults of legacy calls belong to those alone. */
const asked = async (agent: Agent, field: string, options: { memory?: { thread: string; resource: string } } = {}): Promise<unknown> => {
  if (field === 'defaultGenerateOptionsLegacy') return agent.generateLegacy('Go.', options)
  if (field === 'defaultStreamOptionsLegacy') return (await agent.streamLegacy('Go.', options)).text
  return agent.generate('Go.', options)
}

describe.each(fields)('a function for %s', (field) => {
  const wrongOf = [...junk, field.endsWith('Processors') ? {} : []]

  it('that answers nothing or something else is refused by its name, with and without a thread', async () => {
    for (const answer of wrongOf) {
      for (const find of [() => answer, async () => answer]) {
        const agent = made(field, find)
        const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
        const refused = { code: 'invalid_agent', details: { field }, message: expect.stringContaining(`${field} of agent 'guide'`) }
        await expect(asked(agent, field)).rejects.toMatchObject(refused)
        await expect(asked(agent, field, { memory: { thread: 't', resource: 'u' } })).rejects.toMatchObject(refused)
        await heed.close()
      }
    }
  })

  it('that answers with nothing in it is fine', async () => {
    expect((await made(field, () => (field.endsWith('Processors') ? [] : {})).generate('Go.')).text).toBe('Hi.')
  })
})

it('agents that are no object by their names are refused when the agent is made', () => {
  const other = new Agent({ id: 'other', model: scriptedModel([]) })
  for (const agents of [[other], [], 3, 'other', null]) expect(thrownBy(() => made('agents', agents))).toMatchObject({ code: 'invalid_agent', details: { field: 'agents' } })
})
