import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { CedarPolicies, FilePolicyStore, type PolicyRequest } from 'heed/policy'

const forbidEmail = 'forbid(principal, action == Policy::Action::"receive_signal", resource in Policy::Channel::"email");'

const message = (kind: string): PolicyRequest => ({
  tenant: 'acme', action: 'receive_signal', principal: { type: 'agent', id: 'guide', resourceId: 'user' },
  resource: { type: 'message_source', channel: { kind, id: 'main' }, verified: true },
})

test('policies are saved, found again by the next process, and decide', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-policy-'))
  t.after(() => rmSync(folder, { recursive: true }))
  await new CedarPolicies({ store: new FilePolicyStore({ folder }) }).savePolicies('acme', { forbid_email: forbidEmail })
  const next = new CedarPolicies({ store: new FilePolicyStore({ folder }) })
  assert.deepEqual((await next.authorize(message('email'))).policyIds, ['forbid_email'])
  assert.equal((await next.authorize(message('sms'))).allowed, true)
})

const installed = join(import.meta.dirname, '..', 'node_modules')

/** Runs `heed policy check` of the package in these modules, on files of a folder that the end of the test removes. */
function checking(t: TestContext, modules = installed) {
  const folder = mkdtempSync(join(tmpdir(), 'heed-policy-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return (files: Record<string, string>, ...args: string[]) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    const { status, stdout, stderr } = spawnSync(join(modules, '.bin', 'heed'), ['policy', 'check', ...Object.keys(files), ...args], { cwd: folder, encoding: 'utf8' })
    assert.doesNotMatch(stdout + stderr, /^\s+at |node:internal|HeedError/m)
    return { status, stdout, stderr }
  }
}

test('the command heed is installed, checks files of policies, and points into them', (t) => {
  const heed = checking(t)
  assert.deepEqual(heed({ 'fine.cedar': forbidEmail }), { status: 0, stdout: 'ok (1 policy)\n', stderr: '' })
  const typo = forbidEmail.replace('receive', 'recieve')
  const mark = `${' '.repeat(28)}${'^'.repeat('Policy::Action::"recieve_signal"'.length)}`
  const problem = 'unrecognized action `Policy::Action::"recieve_signal"` (did you mean `Policy::Action::"receive_signal"`?)'
  assert.deepEqual(heed({ 'typo.cedar': `${forbidEmail}\n${typo}` }), {
    status: 5, stdout: '', stderr: `typo.cedar:2:29: ${problem}\n  ${typo}\n  ${mark}\n`,
  })
  const several = heed({ 'fine.cedar': forbidEmail, 'short.cedar': 'permit(principal' })
  assert.deepEqual([several.status, several.stdout], [5, 'fine.cedar: ok (1 policy)\n'])
  assert.match(several.stderr, /^short\.cedar:1:17: unexpected end of input/)
  assert.deepEqual(heed({}, 'missing.cedar'), { status: 5, stdout: '', stderr: 'missing.cedar: there is no such file\n' })
  assert.deepEqual(heed({}), { status: 2, stdout: '', stderr: 'heed policy check: name the FILE: a file with policies.\n' })
  assert.deepEqual(heed({}, '--strict'), { status: 2, stdout: '', stderr: 'heed policy check: there is no option --strict.\n' })
})

test('without Cedar, the command names the package to install', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-without-cedar-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const modules = join(folder, 'node_modules')
  cpSync(join(installed, 'heed'), join(modules, 'heed'), { recursive: true })
  for (const name of readdirSync(installed)) if (!['heed', '.bin', '@cedar-policy'].includes(name)) symlinkSync(join(installed, name), join(modules, name))
  mkdirSync(join(modules, '.bin'))
  symlinkSync(join(modules, 'heed', 'dist', 'command-line.js'), join(modules, '.bin', 'heed'))
  assert.deepEqual(checking(t, modules)({ 'fine.cedar': forbidEmail }), {
    status: 1, stdout: '',
    stderr: 'heed policy check: Policies need the package @cedar-policy/cedar-wasm: npm install @cedar-policy/cedar-wasm.\n  provider_not_installed\n',
  })
})
