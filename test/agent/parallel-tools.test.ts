import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, turn } from './asking.ts'

/** A tool whose calls end when the test says so. */
function heldTool() {
  const running: string[] = []
  const ends = new Map<string, () => void>()
  const tool = createTool({
    id: 'hold',
    inputSchema: z.object({ name: z.string() }),
    execute: ({ name }) => new Promise<string>((resolve) => {
      running.push(name)
      ends.set(name, () => resolve(`${name} is done`))
    }),
  })
  return { tool, running, end: (name: string) => ends.get(name)?.() }
}

const calls = (...names: string[]) => ({ toolCalls: names.map((name) => ({ toolName: 'hold', input: { name } })) })

describe('the tools of one step', () => {
  it('[G1.1] run side by side, and their results stand in the order of the calls whatever order they end in', async () => {
    const model = scriptedModel([calls('a', 'b', 'c'), 'Done.'])
    const { tool, running, end } = heldTool()
    const stream = await new Agent({ id: 'a', model, tools: { hold: tool } }).stream('Go.')
    await turn()
    expect(running).toEqual(['a', 'b', 'c'])
    for (const name of ['c', 'a', 'b']) {
      end(name)
      await turn()
    }
    const { toolResults } = await stream.result
    expect(toolResults.map((result) => result.result)).toEqual(['a is done', 'b is done', 'c is done'])
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({
      role: 'tool',
      content: ['a', 'b', 'c'].map((name) => ({ output: { type: 'text', value: `${name} is done` } })),
    })
    // Watchers see each when it is there.
    const shown = of(await chunksOf(stream), 'tool-result').map((chunk) => chunk.payload.result)
    expect(shown).toEqual(['c is done', 'a is done', 'b is done'])
  })

  it('run no more at once than toolCallConcurrency allows', async () => {
    const model = scriptedModel([calls('a', 'b', 'c', 'd'), 'Done.'])
    const { tool, running, end } = heldTool()
    const stream = await new Agent({ id: 'a', model, tools: { hold: tool } }).stream('Go.', { toolCallConcurrency: 2 })
    await turn()
    expect(running).toEqual(['a', 'b'])
    end('b')
    await turn()
    expect(running).toEqual(['a', 'b', 'c'])
    end('c')
    await turn()
    expect(running).toEqual(['a', 'b', 'c', 'd'])
    end('a')
    end('d')
    expect((await stream.toolResults).map((result) => result.result)).toEqual(['a is done', 'b is done', 'c is done', 'd is done'])
  })

  it('are ten at once by default', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `t${index}`)
    const many = heldTool()
    const ten = await new Agent({ id: 'a', model: scriptedModel([calls(...names), 'Done.']), tools: { hold: many.tool } }).stream('Go.')
    await turn()
    expect(many.running).toHaveLength(10)
    const few = heldTool()
    const one = await new Agent({ id: 'a', model: scriptedModel([calls('a', 'b'), 'Done.']), tools: { hold: few.tool } }).stream('Go.', { toolCallConcurrency: 1 })
    await turn()
    expect(few.running).toEqual(['a'])
    for (const name of names) {
      many.end(name)
      await turn()
    }
    for (const name of ['a', 'b']) {
      few.end(name)
      await turn()
    }
    expect((await ten.toolResults).length + (await one.toolResults).length).toBe(14)
  })

  it('keep going when one of them fails', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'bad' }, { toolName: 'good' }] }, 'Done.'])
    const bad = createTool({ id: 'bad', execute: () => Promise.reject(new Error('no luck')) })
    const good = createTool({ id: 'good', execute: async () => 'fine' })
    const { toolResults } = await new Agent({ id: 'a', model, tools: { bad, good } }).generate('Go.')
    expect(toolResults).toMatchObject([{ result: 'bad failed: no luck', isError: true }, { result: 'fine' }])
  })
})
