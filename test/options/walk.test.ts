import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { calls, withoutOptions } from './calls.ts'
import { cited } from './cited.ts'
import { declaredOptions, exportedCalls } from './declared.ts'
import { doors } from './doors.ts'
import { runs } from './probes/calls.ts'
import { channels } from './probes/channels.ts'
import { clientRequests } from './probes/requests.ts'
import { constructors } from './probes/constructors.ts'
import { pages } from './probes/pages.ts'
import { policies } from './probes/policies.ts'
import { sends } from './probes/sends.ts'
import { servers } from './probes/servers.ts'
import { storesAndTools } from './probes/stores-and-tools.ts'
import { threads } from './probes/threads.ts'
import { watches } from './probes/watches.ts'
import { workflows } from './probes/workflows.ts'

const probes = [...sends, ...runs, ...threads, ...watches, ...channels, ...constructors, ...storesAndTools, ...servers, ...policies, ...clientRequests, ...pages, ...workflows]

/** What is declared and what is shown, as `Owner.option`. */
const declared = [...declaredOptions(calls)].flatMap(([owner, options]) => [...options].map((option) => `${owner}.${option}`))
const shown = [...probes, ...cited].flatMap(({ covers }) =>
  Object.entries(covers).flatMap(([owner, options]) => options.split(' ').map((option) => `${owner}.${option}`)))

describe('every option of every public call', () => {
  it('[G1.12] is walked: each exported function and class is listed', () => {
    const listed = [calls, withoutOptions].flatMap((some) =>
      Object.entries(some).flatMap(([entry, names]) => names.map((name) => `${entry} ${name.replace('new ', '')}`)))
    expect(exportedCalls().map(([entry, name]) => `${entry} ${name}`).filter((one) => !listed.includes(one))).toEqual([])
  })

  it('[G1.12] has a probe or a test that shows its effect, or that it is rejected by name', () => {
    expect(declared.length).toBeGreaterThan(900)
    expect(declared.filter((option) => !shown.includes(option))).toEqual([])
    expect([...new Set(shown)].filter((option) => !declared.includes(option))).toEqual([])
  })

  it.each(['AgentConfig', 'SendBranches', 'SemanticRecallOptions', 'MemoryConfig', 'HeedConfig', 'ServeOptions', 'TokenLimiterOptions', 'ClientOptions'])('[G1.12] finds an option that is added to %s, which has no probe', (name) => {
    const added = [...declaredOptions(calls, (text) => text.replace(new RegExp(`^(export )?(declare )?interface ${name}\\b[^{]*\\{$`, 'm'), '$&\n  addedLater?: string;'))]
      .flatMap(([owner, options]) => [...options].map((option) => `${owner}.${option}`)).filter((option) => option.endsWith('addedLater'))
    expect(added.length).toBeGreaterThan(0)
    expect(added.filter((option) => shown.includes(option))).toEqual([])
  })

  it.each(cited)('$file: $title', ({ file, title, covers }) => {
    const text = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    const start = title === undefined ? 1 : text.indexOf(title)
    expect(start).toBeGreaterThan(0)
    const [body = ''] = title === undefined ? [text] : text.slice(start).split(/^ {2}it[.(]|^it[.(]|^describe/m)
    for (const option of Object.values(covers).join(' ').split(' ')) expect(body).toMatch(new RegExp(`\\b${option.split('.').at(-1)}\\b`))
  })

  it.each(Object.entries(doors))('[G1.12] %s: a name that it does not have is rejected', async (_, call) => {
    const error = await (async () => call({ nonsense: 1 }))().then(() => undefined, (thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'HeedError', code: 'unsupported_option', message: expect.stringContaining("'nonsense'") })
  })

  it.each(probes)('[G1.12] $title', ({ run }) => run())
})
