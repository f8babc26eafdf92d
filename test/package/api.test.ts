import { describe, expect, it } from 'vitest'
import { apiProblems, apiReport } from '../../scripts/checks/api.ts'
import { tree } from './tree.ts'

const entries = [
  { specifier: 'sample', name: 'sample', source: 'src/index.ts' },
  { specifier: 'sample/deep', name: 'deep', source: 'src/deep/index.ts' },
]
const files = {
  'index.d.ts': `export { open, type Options as OpenOptions } from './door.ts';\nexport type * from './kinds.ts';\n`,
  'door.d.ts': [
    `import type { Key } from './key.ts';`,
    `/** Where to. */\nexport interface Options {\n    /** Opens it. */\n    key: Key;\n}`,
    `export declare function open(options: Options): import("./room.ts").Room<string>;`,
    `export declare function open(): void;`,
    `export declare const unused: number;`,
    '',
  ].join('\n'),
  'key.d.ts': 'export type Key = string | Teeth;\ninterface Teeth {\n    count: number;\n}\nexport {};\n',
  'room.d.ts': 'export interface Room<T> {\n    seats: T[];\n}\n',
  'kinds.d.ts': `export type Kind = 'a' | 'b';\n`,
  'deep/index.d.ts': `export type { Kind } from '../kinds.ts';\nexport type { Room } from '../room.ts';\n`,
}
const body = (text = '') => text.split('\n').slice(3).join('\n')

describe('the report of the public surface', () => {
  it('has each exported declaration once, and what they refer to, without comments and paths', () => {
    const report = apiReport(tree(files), entries)
    expect(Object.keys(report)).toEqual(['sample.d.txt', 'deep.d.txt', 'unexported.d.txt'])
    expect(body(report['sample.d.txt'])).toBe(
      [
        `export type Kind = 'a' | 'b';\n`,
        `// OpenOptions is\nexport interface Options {\n    key: Key;\n}\n`,
        `export function open(options: Options): Room<string>;\n`,
        `export function open(): void;\n`,
      ].join('\n'),
    )
    expect(body(report['deep.d.txt'])).toBe('export Kind: see sample\n\nexport interface Room<T> {\n    seats: T[];\n}\n')
    expect(body(report['unexported.d.txt'])).toBe('export type Key = string | Teeth;\n\ninterface Teeth {\n    count: number;\n}\n')
  })

  it('does not change when a module moves', () => {
    const { 'room.d.ts': room, ...others } = files
    const moved = Object.fromEntries(Object.entries(others).map(([path, text]) => [path, text.replaceAll('./room.ts', './house/room.ts')]))
    expect(apiReport(tree({ ...moved, 'house/room.d.ts': room }), entries)).toEqual(apiReport(tree(files), entries))
  })

  it('shows a changed signature, a new name and a name that is gone', () => {
    const before = apiReport(tree(files), entries)
    const changed = {
      ...files,
      'room.d.ts': 'export interface Room<T> {\n    seats: Set<T>;\n}\n',
      'kinds.d.ts': `export type Sort = 'a';\n`,
      'deep/index.d.ts': `export type { Room } from '../room.ts';\n`,
    }
    const problems = apiProblems(before, apiReport(tree(changed), entries))
    expect(problems).toEqual([expect.stringContaining('api/deep.d.txt differs'), expect.stringContaining('api/sample.d.txt differs')])
    expect(problems[0]).toContain('- export Kind: see sample\n-     seats: T[];\n+     seats: Set<T>;')
    expect(problems[1]).toContain(`- export type Kind = 'a' | 'b';\n+ export type Sort = 'a';`)
    expect(apiProblems(before, before)).toEqual([])
  })
})
