import { createRequire } from 'node:module'
import { expect, importHeed, input, report } from '../../harness/side.mjs'

const { CedarPolicies } = await importHeed('policy')
// The package is a peer of Heed's: the repository has it.
const cedar = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs')
const policies = new CedarPolicies({ engine: async () => cedar })

function request(tenant, index) {
  return {
    tenant, action: 'receive_signal', principal: { type: 'agent', id: 'assistant', resourceId: 'user' },
    resource: { type: 'message_source', channel: { kind: 'sms', id: 'main' }, verified: true, contactId: `contact-${index}` },
    context: { categories: ['auth', 'verification_code'] },
  }
}

/** Forbids that never match, and one that concerns another kind of channel. */
async function decisions(count) {
  const tenant = `tenant-${count}`
  const rules = Array.from({ length: count }, (_, index) => [
    `rule-${index}`,
    `forbid(principal, action == Policy::Action::"receive_signal", resource in Policy::Channel::"kind-${index}") when { !resource.verified };`,
  ])
  const began = performance.now()
  await policies.savePolicies(tenant, Object.fromEntries(rules))
  const save = performance.now() - began
  const times = []
  for (let index = 0; index < input.warmup + input.runs; index++) {
    const asked = request(tenant, index)
    const start = performance.now()
    const { allowed } = policies.decide(asked)
    times.push(performance.now() - start)
    expect('allowed', allowed, true)
  }
  const last = request(tenant, input.warmup + input.runs - 1)
  const start = performance.now()
  for (let index = 0; index < input.runs; index++) policies.decide(last)
  const again = (performance.now() - start) / input.runs
  const sorted = times.slice(input.warmup).toSorted((one, other) => one - other)
  const at = (share) => sorted[Math.floor(sorted.length * share)]
  return { save, p50: at(0.5), p99: at(0.99), again }
}

const [one, hundred, most] = [await decisions(1), await decisions(100), await decisions(495)]
report({
  'p50, 1 policy': one.p50, 'p50, 100 policies': hundred.p50, 'p99, 100 policies': hundred.p99, 'p50, 495 policies': most.p50,
  '100 over 1': hundred.p50 / one.p50, again: hundred.again, 'again over new': hundred.again / hundred.p50, 'save, 100 policies': hundred.save,
})
