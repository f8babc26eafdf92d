import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkPack, type PackLimits } from '../../scripts/checks/pack/pack.ts'
import { contentProblems } from '../../scripts/checks/pack/contents.ts'
import type { CheckResult } from '../../scripts/checks/report.ts'
import { tree } from './tree.ts'

const tsc = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url))
const condition = (name: string) => ({ types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` })
const manifest = {
  name: 'sample',
  version: '1.0.0',
  type: 'module',
  files: ['dist', 'LICENSE'],
  exports: { '.': condition('index'), './deep': condition('deep'), './package.json': './package.json' },
  scripts: { build: 'node --eval 0' },
}
const good = {
  'package.json': manifest,
  LICENSE: 'free',
  'dist/index.js': 'export const a = 1\nexport default 2\n',
  'dist/index.d.ts': 'export declare const a: number\ndeclare const _default: number\nexport default _default\n',
  'dist/deep.js': 'export const b = 1\n',
  'dist/deep.d.ts': 'export declare const b: number\n',
}

function pack(files: Record<string, string | object>, limits: PackLimits = { packages: 1, megabytes: 1 }) {
  const checks: Array<[string, CheckResult]> = []
  const problems = checkPack(tree(files), { tsc, limits, onCheck: (name, result) => checks.push([name, result]) })
  const summary = Object.fromEntries(checks.map(([name, result]) => [name, result.summary]))
  return { problems, names: checks.map(([name]) => name), summary }
}

describe('the packed package', () => {
  it('is built, packed, installed, imported and compiled as a user would', () => {
    const { problems, names, summary } = pack(good)
    expect(problems).toEqual([])
    expect(names).toEqual(['build', 'tarball', 'install', 'installed', 'modules', 'imports', 'types'])
    expect(summary.imports).toBe('exports: sample 2, sample/deep 1')
    expect(summary.types).toContain('2 subpaths compile, strict, nodenext, libraries checked too')
  })

  it('reports what a user would meet', () => {
    const { problems } = pack(
      {
        ...good,
        'dist/index.js': `import 'not-installed'\nexport const a = 1\n`,
        'dist/deep.js': 'export {}\n',
        'dist/native.node': 'x'.repeat(1000),
        'dist/deep.test.js': 'export {}\n',
      },
      { packages: 0, megabytes: 0.0001 },
    )
    expect(problems).toEqual([
      'dist/deep.test.js is a test and in the tarball: exclude it in tsconfig.build.json.',
      `${join('sample', 'dist', 'native.node')} is native code: make its package an optional peer.`,
      '1 packages are installed, more than 0: sample. Do without one.',
      '0.0 MB are installed, more than 0.0001: do without what is large.',
      expect.stringMatching(/^import 'sample' fails: .*Cannot find package 'not-installed'/),
      `import 'sample/deep' gives nothing: export something, or take the subpath out of "exports".`,
    ])
  })

  it('tells where types and code part', () => {
    const { problems } = pack({ ...good, 'dist/deep.d.ts': `export { c } from './gone.js'\n` })
    expect(problems).toEqual([
      expect.stringMatching(/^the published types are wrong: node_modules\/sample\/dist\/deep\.d\.ts.*'\.\/gone\.js'/),
      expect.stringMatching(/^the published types are wrong: uses\.ts.*'b'/),
    ])
  })

  it('stops at a build that fails, and shows it', () => {
    const scripts = { build: `node --eval "throw new Error('no luck')"` }
    const { problems, names } = pack({ ...good, 'package.json': { ...manifest, scripts } })
    expect(names).toEqual(['build'])
    expect(problems).toEqual([expect.stringContaining('no luck')])
  })
})

describe('the contents of the tarball', () => {
  const packed = ['package.json', 'LICENSE', 'dist/index.js', 'dist/index.d.ts', 'dist/deep.js', 'dist/deep.d.ts']

  it('are code, types and papers', () => {
    expect(contentProblems(manifest, packed)).toEqual([])
  })

  it('are no tests, maps or sources', () => {
    expect(contentProblems(manifest, [...packed, 'dist/a.test.js', 'dist/b.js.map', 'src/c.ts'])).toEqual([
      'dist/a.test.js is a test and in the tarball: exclude it in tsconfig.build.json.',
      'dist/b.js.map is in the tarball: sources are not published, so turn source maps off.',
      'src/c.ts is TypeScript source in the tarball: publish what is built from it.',
    ])
  })

  it('are sources only where package.json names them as such', () => {
    const examples = { ...manifest, files: [...manifest.files, 'examples/*.ts', '!examples/*.test.ts'] }
    expect(contentProblems(examples, [...packed, 'examples/a.ts'])).toEqual([])
    expect(contentProblems(examples, [...packed, 'examples/deep/a.ts'])).toEqual([
      'examples/deep/a.ts is TypeScript source in the tarball: publish what is built from it.',
      '"files" names examples/*.ts, and nothing of it is in the tarball: add it, or take it out of "files".',
    ])
  })

  it('are everything that package.json names', () => {
    expect(contentProblems(manifest, packed.filter((path) => !/LICENSE|deep\.d/.test(path)))).toEqual([
      '"files" names LICENSE, and nothing of it is in the tarball: add it, or take it out of "files".',
      '"exports" sends ./deep to ./dist/deep.d.ts, which is not in the tarball: build it, or correct the path.',
    ])
    expect(contentProblems({ name: 'sample', exports: { '.': './dist/index.js' } }, packed)).toEqual([
      '"exports" gives . no "types" as its first condition: a compiler takes the first that fits.',
    ])
  })
})
