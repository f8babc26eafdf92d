import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { virtualClock } from '../../src/testing/index.ts'
import { killed, runChild, said } from '../lanes/child.ts'
import { openHeed } from '../thread/places.ts'
import { guarded, places } from './guarded.ts'
import { expectIndexOf, expectNothingOf } from './refused.ts'

describe('a process that is killed while it refuses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-refusals-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  const moments = ['before the refusal is stored', 'right after it is stored'] as const
  const cases = places.flatMap((place) => moments.map((moment) => ({ place, moment })))

  it.each(cases)('[R7.3] of $place, $moment, leaves nothing of it in history, lanes, working memory or the index of recall either', async ({ place, moment }) => {
    const url = `file:${join(folder, `${place}-${moments.indexOf(moment)}.db`.replaceAll(' ', '-'))}`
    const child = runChild(`
      const { approving, guarded, startOf, thread } = await import(${JSON.stringify(new URL('./guarded.ts', import.meta.url).href)})
      const die = () => process.kill(process.pid, 'SIGKILL')
      const early = ${JSON.stringify(moment === moments[0])}
      const refusing = async () => { if (early) { await waiting; process.send('refusing', die); await new Promise(() => {}) } }
      const { agent, agents } = guarded(${JSON.stringify(place)}, refusing)
      new Heed({ agents, storage: new LibSQLStore({ url: ${JSON.stringify(url)} }), logger: silentLogger })
      await agent.generate('Before.', { memory: { thread: 't', resource: 'u' } })
      const { stream } = await agent.subscribeToThread(thread)
      void approving(agent)
      agent.queueMessage({ id: 'first', contents: startOf(${JSON.stringify(place)}) }, thread)
      var waiting = agent.queueMessage({ id: 'then', contents: 'Then.' }, thread).stored
      for await (const chunk of stream) if (chunk.type === 'tripwire') { process.send('refused', die); await new Promise(() => {}) }`)
    expect(await said(child)).toBe(moment === moments[0] ? 'refusing' : 'refused')
    await killed(child)

    // As much later as it takes until the dead process counts as gone.
    const clock = virtualClock(Date.now() + 60_000)
    const { agent, agents } = guarded(place)
    const heed = openHeed(agents, new LibSQLStore({ url, clock }), { clock })
    await heed.start()
    await expectNothingOf(place, agent)
    expectIndexOf(url.slice('file:'.length))
  })
})
