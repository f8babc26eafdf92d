import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { calls, withoutOptions } from './calls.ts'
import { cited } from './cited.ts'
import { declaredOptions, exportedCalls } from './declared.ts'
import { doors } from './doors.ts'
import { runs } from './probes/calls.ts'
import { channelProbes } from './probes/channels.ts'
import { clientRequests } from './probes/requests.ts'
import { constructors } from './probes/constructors.ts'
import { displays } from './probes/displays.ts'
import { domainStores } from './probes/domain-stores.ts'
import { evaluations } from './probes/evaluated.ts'
import { explanations } from './probes/explained.ts'
import { memories } from './probes/memories.ts'
import { pages } from './probes/pages.ts'
import { policies } from './probes/policies.ts'
import { legacy } from './probes/legacy.ts'
import { scheduled } from './probes/schedules.ts'
import { scripts } from './probes/scripts.ts'
import { sends } from './probes/sends.ts'
import { sent, sentInput } from './probes/sent.ts'
import { servers } from './probes/servers.ts'
import { servings } from './probes/serving.ts'
import { startedRuns } from './probes/started-runs.ts'
import { storesAndTools } from './probes/stores-and-tools.ts'
import { steering } from './probes/steering.ts'
import { threads } from './probes/threads.ts'
import { voices } from './probes/voices.ts'
import { watches } from './probes/watches.ts'
import { workflowRuns } from './probes/workflow-runs.ts'
import { workflows } from './probes/workflows.ts'
import { Recorder } from './recorder.ts'
import { readTable, writeTable, type Table } from './table.ts'
import { declared, recorder } from './walked.ts'

const probes = [
  ...startedRuns, ...sent, ...sentInput, ...memories, ...sends, ...runs, ...threads, ...watches, ...channelProbes, ...constructors, ...storesAndTools, ...servers,
  ...policies, ...clientRequests, ...pages, ...workflows, ...explanations, ...evaluations, ...legacy, ...scripts, ...domainStores, ...scheduled, ...servings, ...displays, ...steering, ...workflowRuns, ...voices,
]

/** Heed calls these methods: what they take are its own parts. */
const calledByHeed = new Set(['HeedEditor.join', 'HeedEditor.overridesFor', 'HeedEditor.isReported'])
/** What is declared, as `Call option`. */
const pairs = [...declared].filter(([call]) => !calledByHeed.has(call)).flatMap(([call, options]) => [...options.keys()].map((option) => `${call} ${option}`))
const root = join(import.meta.dirname, '../..')
const table = readTable()
const shownElsewhere = new Set(cited.flatMap(({ covers }) => Object.entries(covers).flatMap(([call, options]) => options.split(' ').map((option) => `${call} ${option}`))))

describe('every option of every public call', () => {
  it('[G1.12] is walked: each exported function and class is listed', () => {
    const listed = [calls, withoutOptions].flatMap((some) =>
      Object.entries(some).flatMap(([entry, names]) => names.map((name) => `${entry} ${name.replace('new ', '')}`)))
    expect(exportedCalls().map(([entry, name]) => `${entry} ${name}`).filter((one) => !listed.includes(one))).toEqual([])
  })

  it('[G1.12] has a probe that needs it, through this call, or a test that shows its effect, or that it is rejected by name', () => {
    expect(pairs.length).toBeGreaterThan(2500)
    const shown = new Set([...table.shown.keys(), ...shownElsewhere])
    expect(pairs.filter((pair) => !shown.has(pair))).toEqual([])
    expect([...shown, ...table.open].filter((pair) => !pairs.includes(pair))).toEqual([])
    expect([...table.shown.values()].filter((title) => !probes.some((probe) => probe.title === title))).toEqual([])
  })

  it.each(['AgentConfig', 'SendBranches', 'SemanticRecallOptions', 'MemoryConfig', 'HeedConfig', 'ServeOptions', 'TokenLimiterOptions', 'ClientOptions'])('[G1.12] finds an option that is added to %s, which has no probe', (name) => {
    const added = [...declaredOptions(calls, (text) => text.replace(new RegExp(`^(export )?(declare )?interface ${name}\\b[^{]*\\{$`, 'm'), '$&\n  addedLater?: string;'))]
      .flatMap(([owner, options]) => [...options.keys()].map((option) => `${owner} ${option}`)).filter((option) => option.endsWith('addedLater'))
    expect(added.length).toBeGreaterThan(0)
    expect(added.filter((option) => table.shown.has(option) || shownElsewhere.has(option))).toEqual([])
  })

  it('[G1.12] finds an option that a call accepts and ignores', async () => {
    class Shop {
      buy({ what }: { what: string; gift?: boolean }) {
        return what
      }
    }
    const own = new Recorder(new Map([['Shop.buy', new Map([['what', undefined], ['gift', undefined]])]]))
    const { buy } = new (own.class('Shop', Shop))()
    const run = async () => expect(buy({ what: 'tea', gift: true })).toBe('tea')
    expect([...(await own.record(run))]).toEqual(['Shop.buy what', 'Shop.buy gift'])
    await expect(own.record(run, 'Shop.buy what')).rejects.toThrow("to be 'tea'")
    await own.record(run, 'Shop.buy gift')
  })

  it.each(cited)('$file: $title', ({ file, title, covers }) => {
    const text = readFileSync(join(root, file), 'utf8')
    const start = title === undefined ? 1 : text.indexOf(title)
    expect(start).toBeGreaterThan(0)
    const [body = ''] = title === undefined ? [text] : text.slice(start).split(/^ {2}it[.(]|^it[.(]|^describe/m)
    for (const option of Object.values(covers).join(' ').split(' ')) expect(body).toMatch(new RegExp(`\\b${option.split('.').at(-1)}\\b`))
  })

  it.each(Object.entries(doors))('[G1.12] %s: a name that it does not have is rejected', async (_, call) => {
    const error = await (async () => call({ nonsense: 1 }))().then(() => undefined, (thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'HeedError', code: 'unsupported_option', message: expect.stringContaining("'nonsense'") })
  })

  it.each(probes)('[G1.12] $title', async ({ title, run }) => {
    const passed = await recorder.record(run)
    expect([...table.shown].filter(([pair, probe]) => probe === title && !passed.has(pair))).toEqual([])
  })
})

// Each option is taken away from the calls of its probe, which has to fail then. With HEED_WRITE_TABLES, the table is written.
const tried = process.env.HEED_EACH_OPTION === undefined ? [] : probes
const writes = process.env.HEED_WRITE_TABLES !== undefined
// To write, what the table has is not tried again: delete the file to try all.
const known = [...table.shown].filter(([pair, title]) => writes && pairs.includes(pair) && probes.some((probe) => probe.title === title))
const found: Table = { shown: new Map(known), open: new Set() }

it.each(tried)('the probe needs each of its options: $title', { timeout: 600_000 }, async ({ title, run }) => {
  const began = performance.now()
  const passed = await recorder.record(run)
  // A probe that waits for what does not happen has failed. A busy machine makes the others slow as well.
  const limitMs = 2_000 + 4 * (performance.now() - began)
  const own = writes ? [...passed].filter((pair) => !found.shown.has(pair)) : pairs.filter((pair) => table.shown.get(pair) === title)
  const unneeded: string[] = []
  for (const pair of own) {
    const failed = await Promise.race([recorder.record(run, pair).then(() => false, () => true), setTimeout(limitMs, true)])
    if (failed) found.shown.set(pair, title)
    else unneeded.push(pair)
  }
  if (writes) writeTable({ ...found, open: new Set(pairs.filter((pair) => !found.shown.has(pair) && !shownElsewhere.has(pair))) })
  else expect(unneeded).toEqual([])
})
