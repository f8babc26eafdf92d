import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkPrograms } from '../../scripts/checks/pack/programs.ts'
import { tree } from './tree.ts'

const nodeModules = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** Runs programs in a project that has the package `sample`. */
function run(files: Record<string, string>) {
  const root = tree({ 'package.json': {} })
  symlinkSync(nodeModules, join(root, 'node_modules'))
  const project = tree({
    'package.json': { type: 'module' },
    'node_modules/sample/package.json': { name: 'sample', type: 'module', exports: { types: './index.d.ts', default: './index.js' } },
    'node_modules/sample/index.js': 'export const a = 1\n',
    'node_modules/sample/index.d.ts': 'export declare const a: number\n',
  })
  return checkPrograms(root, project, join(nodeModules, '.bin', 'tsc'), { folder: tree(files) })
}

describe('programs that use the installed package', () => {
  it('run, and each failed test is reported with its error', () => {
    const uses = [
      `import { describe, test } from 'node:test'`, `import { a } from 'sample'`, `import { wrong } from './parts/wrong.ts'`,
      `describe('a group', () => {`, `  test('works', () => {})`,
      `  test('fails', () => wrong(a))`, `})`, `test('is left out', { skip: 'no browser' }, () => {})`, '',
    ]
    const wrong = 'export function wrong(value: number): never {\n  throw new Error(`${value} is wrong`)\n}\n'
    const { problems, summary } = run({ 'uses.ts': uses.join('\n'), 'parts/wrong.ts': wrong })
    expect(problems).toEqual([expect.stringMatching(/^fails: .*1 is wrong/)])
    expect(summary).toBe('1 tests of 1 programs; skipped: is left out (no browser)')
  })

  it('are refused where they do not compile, crash, or test nothing', () => {
    const { problems } = run({ 'uses.ts': `import { a } from 'sample'\nexport const text: string = a\n` })
    expect(problems).toEqual([expect.stringMatching(/^a program that uses the package does not compile: programs\/uses\.ts/)])
    expect(run({ 'uses.ts': `import { a } from 'sample'\nprocess.exit(a)\n` }).problems).toEqual([expect.stringContaining('uses.ts')])
    expect(run({}).problems).toEqual([expect.stringMatching(/no program/i)])
  })
})
