import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import type { Bus } from '../../src/bus/contract.ts'
import { LocalBus } from '../../src/bus/local.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'

it('a jump of a virtual clock is no failure of a bus, which answers in real time', async () => {
  const clock = virtualClock()
  const warnings: string[] = []
  const warn = (line: string) => void warnings.push(line)
  const local = new LocalBus()
  const peers = Promise.withResolvers<void>()
  const bus: Bus = { connect: async (options) => ({ ...(await local.connect(options)), hasPeers: true, ready: () => peers.promise }) }
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Fine.') })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), bus, logger: { debug() {}, info() {}, warn, error: warn }, clock })
  onTestFinished(() => heed.close())
  const started = heed.start()
  for (let moved = 0; moved < 5; moved += 1) await clock.advance(10_000)
  peers.resolve()
  await started
  expect((await agent.generate('Hi.')).text).toBe('Fine.')
  expect(warnings).toEqual([])
})
