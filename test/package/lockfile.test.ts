import { describe, expect, it } from 'vitest'
import { checkLockfile } from '../../scripts/checks/lockfile.ts'
import { tree } from './tree.ts'

const entry = {
  version: '8.20.0',
  integrity: 'sha512-x',
  funding: { url: 'https://example.com/sponsor' },
  deprecated: 'see https://example.com',
}
const check = (manifest: object, entries: Record<string, object>) =>
  checkLockfile(tree({ 'package.json': manifest, 'package-lock.json': { packages: { '': manifest, ...entries } } })).problems

describe('lock file', () => {
  it('passes exact versions from no particular place', () => {
    const manifest = {
      dependencies: { ajv: '8.20.0' },
      devDependencies: { pg: '18.4.0-beta.17' },
      peerDependencies: { zod: '^4' },
      overrides: { vite: { rolldown: '1.2.14' } },
    }
    expect(check(manifest, { 'node_modules/ajv': entry })).toEqual([])
  })

  it('refuses addresses, however they are spelt', () => {
    const found = check({}, {
      'node_modules/a': { ...entry, resolved: 'https://registry.example/a.tgz' },
      'node_modules/b': { ...entry, version: 'git+ssh://git@example.com/b.git#1' },
      'node_modules/c': { ...entry, dependencies: { d: 'https://example.com/d.tgz' } },
    })
    expect(found).toEqual([
      'package-lock.json: node_modules/a has a resolved address: set omit-lockfile-registry-resolved=true in .npmrc and run `npm install`.',
      'package-lock.json: node_modules/b.version is an address: a package comes from the registry, by version.',
      'package-lock.json: node_modules/c.dependencies.d is an address: a package comes from the registry, by version.',
    ])
  })

  it('refuses what cannot be verified', () => {
    expect(check({}, { 'node_modules/a': { version: '1.0.0' } })).toEqual([
      "package-lock.json: node_modules/a has no integrity, so `npm ci` can't verify it: install it again from a registry.",
    ])
  })

  it.each(['^8.20.0', '~1.2.3', '8', '*', 'latest', '8.x', '>=1.0.0', 'file:../ajv'])('refuses the version %s', (version) => {
    expect(check({ dependencies: { ajv: version } }, {})).toEqual([
      `package.json: dependencies.ajv is "${version}": write the exact version that was tried.`,
    ])
  })

  it('refuses a lock file that is behind the manifest', () => {
    const lock = { packages: { '': { dependencies: { ajv: '8.19.0' } } } }
    expect(checkLockfile(tree({ 'package.json': { dependencies: { ajv: '8.20.0' } }, 'package-lock.json': lock })).problems).toEqual([
      'package-lock.json: its dependencies are not those of package.json: run `npm install` and commit both.',
    ])
  })

  it('asks for a lock file when there is none', () => {
    expect(checkLockfile(tree({ 'package.json': {} })).problems).toEqual(['package-lock.json is missing: run `npm install` and commit it.'])
  })
})
