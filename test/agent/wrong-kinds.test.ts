import { afterEach, describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, isHeedError, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const opened: Heed[] = []
afterEach(async () => {
  for (const heed of opened.splice(0)) await heed.close()
})

async function made() {
  const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hi.'), memory: new Memory({ workingMemory: { enabled: true } }) })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  opened.push(heed)
  const memory = await agent.getMemory()
  return { agent, heed, memory, schedules: agent.schedules, ofResource: memory.forResource('u') }
}

/** Called by Heed alone, or with nothing to get wrong. */
const internal: Record<string, readonly string[]> = {
  agent: ['join', 'site', 'threads', 'resolveStorage', 'inheritStorage', 'prepare', 'memoryOf', 'describeThread', 'titler', 'window', 'contextKeys', 'memoryOptions'],
  heed: ['admit', 'listAgents', 'close', 'drain'],
  memory: ['bind', 'at'],
  ofResource: [],
  schedules: [],
}

function methodsOf(target: object, name: string): string[] {
  const prototype: object = Object.getPrototypeOf(target)
  const owner = prototype === Object.prototype ? target : prototype
  return Object.getOwnPropertyNames(owner).filter((method) => {
    const { value } = Object.getOwnPropertyDescriptor(owner, method) ?? {}
    return typeof value === 'function' && method !== 'constructor' && !internal[name]?.includes(method)
  })
}

const kinds: unknown[] = [undefined, null, 3, Number.NaN, 'text', '', true, [], [null], {}, () => {}, Symbol('s'), new Map(), { threadId: null }, { threadId: 7 }, { threadId: Symbol('s') }]
const scope = { threadId: 't', resourceId: 'u' }
const calls = kinds.flatMap((kind): unknown[][] => [
  [kind], [kind, kind], [kind, scope], ['Hello.', kind], [{ type: 'user', contents: 'x' }, kind], [{ ...scope, id: kind, signalIds: kind, signalId: kind, limit: kind, runId: kind }],
  [{ id: 'lane', cacheKey: 'k', contents: 'x' }, kind], [{ source: 's', kind: 'k', summary: 'x' }, kind],
])

describe.each(['agent', 'heed', 'memory', 'ofResource', 'schedules'] as const)('every method of %s', (name) => {
  it('[G1.12] answers what it can\'t take with an error of ours, whatever it is given', async () => {
    const target = (await made())[name] as unknown as Record<string, (...args: unknown[]) => unknown>
    const methods = methodsOf(target, name)
    expect(methods.length).toBeGreaterThan(3)
    const raw: string[] = []
    for (const method of methods) {
      for (const args of calls) {
        try {
          const answer = await target[method]?.(...args)
          if (answer && typeof answer === 'object' && 'unsubscribe' in answer) (answer as { unsubscribe(): void }).unsubscribe()
          if (answer && typeof answer === 'object' && 'outcome' in answer) await answer.outcome
        } catch (error) {
          if (!isHeedError(error)) raw.push(`${method}(${args.map((arg) => (typeof arg === 'symbol' ? 'symbol' : JSON.stringify(arg))).join(', ')}): ${String(error)}`)
        }
      }
    }
    expect(raw).toEqual([])
  })
})

describe('what is made', () => {
  it.each([[null], [3], ['x'], [[]], [() => {}]])('[G1.12] of %o is refused', (kind) => {
    for (const make of [() => new Agent(kind as never), () => new Heed(kind as never), () => new Memory(kind as never)]) expect(make).toThrow(expect.objectContaining({ name: 'HeedError' }))
  })
})
