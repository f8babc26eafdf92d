import { describe, expect, it } from 'vitest'
import { checkArrows } from '../../scripts/checks/arrows.ts'
import { tree } from './tree.ts'

const problems = (files: Record<string, string | object>) => checkArrows(tree(files)).problems

describe('arrows', () => {
  it('accepts what the table allows, and counts it', () => {
    const root = tree({
      'src/base/errors.ts': 'export class HeedError extends Error {}',
      'src/message/message.ts': `import { HeedError } from '../base/errors.ts'\nexport const message = HeedError`,
      'src/message/list.ts': `export * from './message.ts'`,
      'src/prompt/from-rows.ts': `import { message } from '../message/message.ts'\nexport const prompt = message`,
      'src/run/run.ts': `import { prompt } from '../prompt/from-rows.ts'\nexport const agent = prompt`,
      'src/processors/tripwire.ts': `import type { agent } from '../run/run.ts'\nexport type A = typeof agent`,
      'src/prompt/from-rows.test.ts': `import '../testing/index.ts'`,
      'src/testing/index.ts': `export * from '../run/run.ts'`,
    })
    expect(checkArrows(root)).toEqual({ summary: '7 files, 6 imports', problems: [] })
  })

  it.each([
    ['a static import', `import { agent } from '../run/run.ts'\nexport const x = agent`],
    ['a re-export', `export { agent } from '../run/run.ts'`],
    ['a re-export of everything', `export * from '../run/run.ts'`],
    ['an import for its effects', `import '../run/run.ts'`],
    ['a lazy import', `export const x = () => import('../run/run.ts')`],
    ['a type import', `import type { agent } from '../run/run.ts'\nexport type X = typeof agent`],
    ['an inline type import', `export type X = import('../run/run.ts').Agent`],
  ])('refuses %s against the arrow, and says where the rule is', (_, text) => {
    expect(problems({ 'src/prompt/x.ts': text, 'src/run/run.ts': 'export const agent = 1' })).toEqual([
      'src/prompt/x.ts:1 imports src/run/run.ts: prompt/** may not import run/**. Pass it in, move what both need inward, ' +
        'or change the line of prompt/** in scripts/checks/arrows-table.ts.',
    ])
  })

  it('ignores what only looks like an import', () => {
    const text = [
      `// import '../run/run.ts'`,
      `/* export * from '../run/run.ts' */`,
      'export const a = `import "../run/run.ts"`',
      `export const b = /import '..\\/agent\\/agent.ts'/`,
    ]
    expect(problems({ 'src/prompt/x.ts': text.join('\n'), 'src/run/run.ts': 'export {}' })).toEqual([])
  })

  it('tells a type import from one that loads', () => {
    const files = { 'src/run/run.ts': 'export const agent = 1\nexport type Agent = 1' }
    const loads = 'src/processors/p.ts:1 loads src/run/run.ts: processors/** may only use its types. Write `import type`.'
    expect(problems({ ...files, 'src/processors/p.ts': `export type { Agent } from '../run/run.ts'` })).toEqual([])
    expect(problems({ ...files, 'src/processors/p.ts': `export { agent } from '../run/run.ts'` })).toEqual([loads])
    const inline = `import { type Agent } from '../run/run.ts'\nexport type A = Agent`
    expect(problems({ ...files, 'src/processors/p.ts': inline })).toEqual([loads])
  })

  it('lets a thread know stores by contract only, and stores know the machine only', () => {
    const found = problems({
      'src/store/contract/threads.ts': `import { next } from '../../machine.ts'\nexport const store = next`,
      'src/store/sqlite/store.ts': `export { host } from '../../thread/host.ts'\nexport { store } from '../contract/threads.ts'`,
      'src/machine.ts': 'export const next = 1',
      'src/thread/lease.ts': `import { store } from '../store/contract/threads.ts'\nexport const lease = store`,
      'src/thread/host.ts': `import { store } from '../store/sqlite/store.ts'\nexport const host = store`,
    })
    expect(found).toHaveLength(4)
    expect(found[0]).toContain('src/store/sqlite/store.ts:1 imports src/thread/host.ts: store/sqlite/** may not import thread/**.')
    expect(found[1]).toContain('src/thread/host.ts:1 imports src/store/sqlite/store.ts: thread/** may not import store/sqlite/**.')
    expect(found[2]).toContain('is a cycle')
    expect(found[3]).toContain('is a circle of rooms')
  })

  it('lets the runtime load a driver only when it is used', () => {
    const files = { 'src/store/sqlite/index.ts': 'export const store = 1' }
    expect(problems({ ...files, 'src/store/default.ts': `export const open = () => import('./sqlite/index.ts')` })).toEqual([])
    expect(problems({ ...files, 'src/store/default.ts': `export { store } from './sqlite/index.ts'` })).toEqual([
      'src/store/default.ts:1 loads src/store/sqlite/index.ts at once: store/*.ts may only `await import()` it, where it is used.',
    ])
  })

  it('keeps the outside out of the core, and imports inside src', () => {
    const found = problems({
      'src/http/routes.ts': `export * from '../run/run.ts'`,
      'src/run/run.ts': `export { version } from '../../package.json'\nexport type { R } from '../http/routes.ts'`,
    })
    expect(found).toEqual([
      'src/run/run.ts:1 imports package.json, outside src: the published package has only what is in src.',
      expect.stringContaining('src/run/run.ts:2 imports src/http/routes.ts: run/** may not import http/**.'),
      expect.stringContaining('http/** -> run/** -> http/** is a circle of rooms.'),
    ])
  })

  it('asks for a line when a folder has none', () => {
    expect(problems({ 'src/surprise/a.ts': 'export {}', 'src/surprise/deep/b.ts': 'export {}', 'src/odd.ts': 'export {}' })).toEqual([
      'src/odd.ts is not in the table: add a line to scripts/checks/arrows-table.ts that says what it may import.',
      'src/surprise is not in the table: add a line to scripts/checks/arrows-table.ts that says what it may import.',
    ])
  })

  it('counts types in circles of rooms, and none inside a room', () => {
    const table = { 'one/**': ['type two/**'], 'two/**': ['one/**'] }
    const files = tree({
      'src/one/a.ts': `import type { B } from '../two/b.ts'\nexport type A = B`,
      'src/one/c.ts': `export type * from './a.ts'`,
      'src/two/b.ts': `export type { C as B } from '../one/c.ts'`,
    })
    expect(checkArrows(files, table).problems).toEqual([expect.stringContaining('one/** -> two/** -> one/** is a circle of rooms.')])
  })

  it('finds cycles of files that load each other, and none through types', () => {
    const cycle = problems({
      'src/agent/a.ts': `export * from './b.ts'`,
      'src/agent/b.ts': `export const load = () => import('./c.ts')`,
      'src/agent/c.ts': `import './a.ts'`,
    })
    expect(cycle).toEqual([
      'src/agent/a.ts -> src/agent/b.ts -> src/agent/c.ts -> src/agent/a.ts is a cycle. ' +
        'Move what they share to a file that both import, or import only its types.',
    ])
    const types = problems({ 'src/agent/a.ts': `export type * from './b.ts'`, 'src/agent/b.ts': `export type * from './a.ts'` })
    expect(types).toEqual([])
  })
})

describe('packages', () => {
  const manifest = { dependencies: { ajv: '1.0.0' }, peerDependencies: { '@scope/driver': '1' }, devDependencies: { zod: '4.0.0' } }
  const importing = (text: string) => problems({ 'package.json': manifest, 'src/schema/x.ts': text })

  it('loads with Heed only what users have', () => {
    expect(importing(`import 'ajv/dist/2020.js'\nexport const driver = () => import('@scope/driver')`)).toEqual([])
    expect(importing(`export type { D } from '@scope/driver/types'`)).toEqual([])
    expect(importing(`import { driver } from '@scope/driver'\nexport const d = driver`)).toEqual([
      'src/schema/x.ts:1 loads the optional peer @scope/driver at once: `await import()` it where it is used.',
    ])
    expect(importing(`import type { z } from 'zod'\nexport type Z = typeof z`)).toEqual([
      "src/schema/x.ts:1 imports zod, which users don't have: make it a dependency, or an optional peer that is imported when used.",
    ])
  })
})

describe('purity', () => {
  it.each([
    [`export const x = Date.now()`, 'Date.now()'],
    [`export const x = new Date()`, 'new Date()'],
    [`export const x = Math.random()`, 'Math.random()'],
    [`export const x = crypto.randomUUID()`, 'crypto.randomUUID()'],
    [`export const x = process.env.HOME`, 'process'],
    [`setTimeout(() => {}, 1)`, 'setTimeout'],
    [`export const x = { process }`, 'process'],
  ])('%s is refused in signals, prompt and the machines', (text, what) => {
    for (const path of ['src/signals/x.ts', 'src/prompt/deep/x.ts', 'src/machine.ts']) {
      expect(problems({ [path]: text })).toEqual([
        `${path}:1 uses ${what}: this file is pure. Take the value, or a function that gives it, as a parameter.`,
      ])
    }
    expect(problems({ 'src/agent/x.ts': text })).toEqual([])
  })

  it('refuses Node and the clock, not words in comments, strings and property names', () => {
    expect(problems({ 'src/base/clock.ts': 'export const now = 1', 'src/prompt/x.ts': `import 'node:fs'\nimport '../base/clock.ts'` })).toEqual([
      'src/prompt/x.ts:1 imports node:fs: this file is pure. Take what it gives as a parameter.',
      expect.stringContaining('src/prompt/x.ts:2 imports src/base/clock.ts: prompt/** may not import base/**.'),
    ])
    const harmless = [
      '// Date.now()',
      `export const text = 'process'`,
      'export const date = new Date(0)',
      'export const object = { process: 1 }',
      'export const property = object.process',
    ]
    expect(problems({ 'src/prompt/x.ts': harmless.join('\n') })).toEqual([])
  })
})

describe('sizes and names', () => {
  it('refuses a file above 520 lines, unless it is a test', () => {
    const lines = (count: number) => 'export {}\n'.repeat(count)
    const files = { 'src/agent/even.ts': lines(520), 'src/agent/long.ts': lines(521), 'src/agent/long.test.ts': lines(600) }
    expect(problems(files)).toEqual(['src/agent/long.ts has 521 lines, more than 520: give its second idea a file of its own.'])
  })

  it('refuses a line above 140 columns, unless it is in a test', () => {
    const line = (columns: number) => `// ${'x'.repeat(columns - 3)}\n`
    const files = { 'src/http/even.ts': line(140), 'src/http/wide.ts': `\n${line(141)}`, 'src/http/wide.test.ts': line(200) }
    expect(problems(files)).toEqual(['src/http/wide.ts:2 has 141 columns, more than 140: break the line.'])
  })

  it('refuses a folder above 18 files, tests not counted', () => {
    const files = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`src/http/f${index}.ts`, 'export {}']))
    expect(problems({ ...files(18), 'src/http/f.test.ts': 'export {}' })).toEqual([])
    expect(problems(files(19))).toEqual(['src/http has 19 files, more than 18: give its second concept a folder of its own.'])
  })

  it('refuses names that say nothing', () => {
    const paths = ['src/agent/utils/x.ts', 'src/agent/string-helpers.ts', 'src/agent/futile.ts']
    expect(problems(Object.fromEntries(paths.map((path) => [path, 'export {}'])))).toEqual([
      'src/agent/string-helpers.ts: "helpers" says nothing about the domain. Name it after what it holds.',
      'src/agent/utils/x.ts: "utils" says nothing about the domain. Name it after what it holds.',
    ])
  })

  it('does not pass over a file that it cannot read', () => {
    expect(() => problems({ 'src/agent/x.ts': 'export const = 1' })).toThrow('src/agent/x.ts does not parse')
  })
})
