import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../../../scripts/programs.ts'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { ChildPlan } from '../child.ts'
import { checks, type Evidence } from '../checks/index.ts'
import { readEffects } from '../effects.ts'
import { readJournals } from '../journal.ts'
import { readLedger, unrest } from '../ledger.ts'
import { buildProgram } from '../program.ts'
import { pause } from '../restless-model.ts'
import { buildLayer, cutPower, underLayer } from './unsynced.ts'

// On a disk: a file system in memory syncs at once, and a cut would find nothing to take.
const work = realpathSync(mkdtempSync('/var/tmp/heed-power-'))
const compiler = await findProgram('cc')
const cuts = 12

/** How many sends were confirmed, in all lives or in one. */
function confirmedIn(folder: string, life?: number): number {
  const lives = readJournals(folder).filter((journal) => life === undefined || journal.life === life)
  return lives.flatMap(({ notes }) => notes).filter(({ note }) => note === 'stored').length
}

describe.skipIf('missing' in compiler)(`a power cut, played by a layer that undoes what was not synced${whySkipped(compiler)}`, () => {
  let program = ''
  let layer = ''
  beforeAll(async () => {
    layer = buildLayer('path' in compiler ? compiler.path : '', work)
    program = await buildProgram(work)
  })
  afterAll(() => rmSync(work, { recursive: true, force: true }))

  /** Lives under the layer, each ended by a cut; then one without it in which everything comes to rest. */
  async function blackouts(name: string, confirm: ChildPlan['confirm'], seed: number) {
    const folder = join(work, name)
    const database = join(folder, 'heed.db')
    mkdirSync(folder)
    const chance = new Chance(seed)
    const dropped: number[] = []
    const start = (life: number, env: Record<string, string>, more: Partial<ChildPlan>) => {
      const plan: ChildPlan = { folder, database, slot: 0, life, threads: ['t0', 't1', 't2'], seed: chance.below(2 ** 31), speed: 20, origin: 0, sends: 60, patience: 2, confirm, ...more }
      return spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { ...process.env, ...env } })
    }
    for (let life = 0; life < cuts; life++) {
      const checkpoint = life % 4 === 3
      const child = start(life, underLayer(layer, folder), checkpoint ? { kill: { point: 'checkpoint', nth: 2 + chance.below(4) } } : {})
      const gone = once(child, 'exit')
      await Promise.race([once(child, 'message'), gone])
      if (!checkpoint) {
        const enough = 14 + chance.below(26)
        await expect.poll(() => confirmedIn(folder, life), { interval: 5 }).toBeGreaterThan(enough)
        await pause(chance.below(20))
        child.kill('SIGKILL')
      }
      expect(await gone).toEqual([null, 'SIGKILL'])
      dropped.push(cutPower(folder).dropped)
    }
    const last = start(cuts, {}, { sends: 0, patience: 1 })
    const gone = once(last, 'exit')
    await Promise.race([once(last, 'message'), gone])
    const db = new DatabaseSync(database, { readOnly: true, timeout: 5_000 })
    await expect.poll(() => unrest(db), { interval: 30 }).toEqual([])
    db.close()
    last.send('stop')
    expect(await gone).toEqual([0, null])
    const evidence: Evidence = { journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(database) }
    const confirmed = confirmedIn(folder)
    return { evidence, dropped, confirmed }
  }

  it('[A1.3] loses nothing whose `stored` resolved', async () => {
    const { evidence, dropped, confirmed } = await blackouts('stored', 'stored', 31)
    for (const name of ['soundFile', 'nothingLost', 'nothingTwice', 'inOrder', 'answered', 'nothingStuck']) expect([name, checks[name]?.(evidence)]).toEqual([name, []])
    // The cuts did take something, and there was something to take.
    expect(dropped.filter((count) => count > 0).length).toBeGreaterThan(cuts / 4)
    expect(confirmed).toBeGreaterThan(10 * cuts)
  })

  it('loses what was accepted and not waited for: the layer does take it', async () => {
    const { evidence, dropped, confirmed } = await blackouts('accepted', 'accepted', 32)
    expect(confirmed).toBeGreaterThan(cuts)
    expect(checks.soundFile?.(evidence)).toEqual([])
    expect(checks.nothingLost?.(evidence).length).toBeGreaterThan(0)
    expect(dropped.filter((count) => count > 0).length).toBeGreaterThan(cuts / 2)
  })
})
