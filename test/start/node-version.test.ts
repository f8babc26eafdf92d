import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../scripts/checks/entries.ts'

const root = join(import.meta.dirname, '../..')
const opensDatabases = entriesOf(root).filter(({ name }) => name === 'heed' || name === 'libsql')

/** Imports an entry in a process whose Node reports this version, and below 22 has no `node:sqlite`, also not while modules are linked. */
function importOn(version: string, source: string) {
  const report = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  const hide = `import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) {
      if (name === 'node:sqlite') throw new Error('No such built-in module: node:sqlite')
      return next(name, context)
    } })`
  const prepared = Number.parseInt(version, 10) < 22 ? `${hide};${report}` : report
  const program = `await import('${pathToFileURL(join(root, source))}'); console.log('imported')`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(prepared)}`, '--input-type=module', '--eval', program]
  return spawnSync(process.execPath, args, { encoding: 'utf8' })
}

describe('the version of Node', () => {
  it.each(opensDatabases)('[R12.3] $specifier is not imported by a Node that is too old, and the error names the one to use', ({ source }) => {
    const { status, stdout, stderr } = importOn('20.20.2', source)
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toContain('HeedError: Heed needs Node 24 or newer, and this is Node 20.20.2. Install Node 24 and run the program with it.')
    expect(stderr).not.toMatch(/node:sqlite|^ {4}at /m)
  })

  it.each(['24.0.0', '26.1.0'])('[R12.3] Node %s imports it', (version) => {
    expect(importOn(version, 'src/index.ts')).toMatchObject({ status: 0, stdout: 'imported\n' })
  })
})
