import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isTest, sourceFiles } from '../../scripts/checks/source.ts'
import { referenceOf } from '../../scripts/docs/reference.ts'
import { tree } from '../package/tree.ts'

const root = join(import.meta.dirname, '../..')
const entries = [
  { specifier: 'sample', name: 'sample', source: 'src/index.ts' },
  { specifier: 'sample/deep', name: 'deep', source: 'src/deep.ts' },
]
const files = {
  'index.d.ts': "export { open, Door, type Options } from './door.ts';\nexport type { Kind } from './kinds.ts';\n",
  'deep.d.ts': "export { Door as Gate } from './door.ts';\n",
  'door.d.ts': [
    "import type { Key } from './key.ts';",
    '/**\n * Opens a door.\n *\n * @example open({ key: 1 })\n */\nexport declare function open(options: Options): Door;',
    'export interface Options {\n    /** Fits the lock.\n     * Or not. */\n    key?: Key;\n    wide: boolean;\n}',
    '/** A way in. */\nexport declare class Door {\n    #private;\n    private hidden;\n    /** Closes it. */\n    close(): void;\n}',
    '',
  ].join('\n'),
  'key.d.ts': '/** What opens a lock. */\nexport type Key = number;\n',
  'kinds.d.ts': "/** Sorts of doors. */\nexport type Kind = 'wood' | 'steel';\n",
}

describe('the reference of the API', () => {
  it('[C6.5] has each exported name with its comment, its declaration and its members, and names what has no comment', () => {
    const { pages, undocumented, places } = referenceOf(tree(files), entries)
    expect(pages.map(({ name }) => name)).toEqual(['sample', 'deep', 'unexported'])
    expect(pages[0]?.markdown).toBe([
      '# sample', 'Everything that `sample` exports.',
      '## Classes', '### Door', 'A way in.', '```ts\nclass Door\n```', '- `close(): void` — Closes it.',
      '## Functions', '### open', 'Opens a door.', '```ts\nopen({ key: 1 })\n```', '```ts\nfunction open(options: Options): Door;\n```',
      '## Interfaces', '### Options', '```ts\ninterface Options\n```', '- `key?: Key` — Fits the lock.\n  Or not.\n- `wide: boolean`',
      "## Types", '### Kind', 'Sorts of doors.', "```ts\ntype Kind = 'wood' | 'steel';\n```",
    ].join('\n\n') + '\n')
    expect(pages[1]?.markdown).toContain('- [`Gate`](sample.md#door) of `sample`')
    expect(pages[2]?.markdown).toContain('### Key\n\nWhat opens a lock.')
    expect(undocumented).toEqual({ names: ['sample: Options'], members: ['sample: Options.wide'] })
    expect(places.get('Key')).toEqual({ page: 'unexported', anchor: 'key' })
  })

  it('refuses a declaration that it has no group for', () => {
    expect(() => referenceOf(tree({ ...files, 'kinds.d.ts': 'export declare enum Kind {\n    a = 0\n}\n' }), entries)).toThrow('no group for TSEnumDeclaration')
  })
})

describe('docs/errors.md', () => {
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8')
  const described = [...page.matchAll(/^### `(\w+)`\n\n(\S.+)\n\n\*\*Remedy\.\*\* (\S.+)$/gm)].map(([, code = '']) => code)
  const headings = [...page.matchAll(/^### `(\w+)`$/gm)].map(([, code = '']) => code)
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const union = read('src/base/errors.ts').split('export type HeedErrorCode =')[1]?.split('\n\n')[0] ?? ''
  const codes = [...union.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, code = '']) => code)

  it('[C6.6] has cause and remedy of every code of HeedError', () => {
    expect(codes.length).toBeGreaterThan(75)
    expect(codes.filter((code) => !described.includes(code))).toEqual([])
  })

  it('[C6.6] has nothing but codes that exist, each once, with cause and remedy', () => {
    const commands = sourceFiles(root, 'src/cli').filter(({ path }) => !isTest(path) && !path.includes('demo')).map(({ text }) => text)
    const elsewhere = [read('src/http/request/error-response.ts'), ...commands].flatMap((text) => [...text.matchAll(/\bcode: '([a-z_]+)'/g)].map(([, code = '']) => code))
    expect(headings.filter((code) => !codes.includes(code) && !elsewhere.includes(code))).toEqual([])
    expect(elsewhere.filter((code) => !headings.includes(code))).toEqual([])
    expect(headings).toEqual([...new Set(described)])
  })
})
