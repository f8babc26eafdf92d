import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../scripts/checks/entries.ts'

const root = join(import.meta.dirname, '../..')
const opensDatabases = entriesOf(root).filter(({ name }) => name === 'heed' || name === 'libsql')

/** Imports an entry in a process whose Node reports this version. */
function importOn(version: string, source: string) {
  const report = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  const program = `await import('${pathToFileURL(join(root, source))}'); console.log('imported')`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(report)}`, '--input-type=module', '--eval', program]
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
