import { describe, expect, it } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, Heed, InMemoryStore, silentLogger, type HeedConfig } from '../../src/index.ts'
import { CedarPolicies } from '../../src/policy/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { call, code, message, opened, reasons, results, target } from './watching.ts'

const forbid = (kind: string) => `forbid(
  principal,
  action == Policy::Action::"receive_signal",
  resource in Policy::Channel::"${kind}"
);`
const wait = { description: 'the code', expected_categories: ['verification_code'], result_schema: code } as const

/** An agent whose thread waits for messages of a mailbox and a phone. */
function guarded(policies: NonNullable<HeedConfig['policies']>, judge: Script = () => call('complete_task', { result: '482913' })) {
  const [mail, phone] = [directChannel({ kind: 'email' }), directChannel({ kind: 'sms' })]
  const [model, judging] = [scriptedModel(() => 'Noted.'), scriptedModel(judge)]
  const agent = new Agent({ id: 'assistant', model, watches: { model: judging } })
  opened({
    agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, policies,
    channels: [new Channel({ id: 'work', adapter: mail, resourceId: 'ada' }), new Channel({ id: 'phone', adapter: phone, resourceId: 'ada' })],
  })
  const candidates = async (id: string) =>
    (await agent.getWatch({ id }))?.candidates.map(({ kind, state, detail }) => [kind, state, ...(detail === undefined ? [] : [detail])])
  return { agent, mail, phone, model, judging, candidates }
}

describe('policies about receiving', () => {
  it('[V4.1] [V4.10] the rule that forbids email denies an email before it is judged, and a message by SMS is received', async () => {
    const { agent, mail, phone, model, judging, candidates } = guarded(new CedarPolicies({ policies: { forbid_email: forbid('email') }, logger: silentLogger }))
    const { id } = await agent.awaitSignal(wait, target)
    await mail.deliver(message('1', 'Your code is 111111.', 'a@example.com'))
    await soon(() => candidates(id)).toEqual([['email', 'denied', 'forbid_email']])
    expect(judging.callCount).toBe(0)
    expect(await agent.getWatch({ id })).toMatchObject({ state: 'open', evaluations: 0 })
    await phone.deliver(message('2', 'Your code is 482913.'))
    await soon(() => model.callCount).toBe(1)
    expect([reasons(model), results(model)]).toEqual([['matched'], ['"482913"']])
    expect(await candidates(id)).toEqual([['email', 'denied', 'forbid_email'], ['sms', 'matched']])
  })

  it('[V4.10] the rule also denies what arrived before the watch was registered', async () => {
    const policies = new CedarPolicies({ logger: silentLogger })
    await policies.savePolicies('ada', { forbid_email: forbid('email') })
    const { agent, mail, phone, model, judging, candidates } = guarded(policies)
    await mail.deliver(message('1', 'Your code is 111111.', 'a@example.com'))
    await phone.deliver(message('2', 'Your code is 482913.'))
    const { id } = await agent.awaitSignal({ ...wait, look_back_seconds: 600 }, target)
    await soon(() => model.callCount).toBe(1)
    expect(judging.callCount).toBe(1)
    expect(await candidates(id)).toEqual([['email', 'denied', 'forbid_email'], ['sms', 'matched']])
  })

  it.each<[string, () => unknown]>([
    ['"no"', () => ({ allowed: 'no', policyIds: [], revision: '' })], ['1', () => ({ allowed: 1, policyIds: [], revision: '' })], ['nothing', () => ({})],
    ['an error', () => { throw new Error('down') }],
  ])('[V4.10] [V4.3] policies that answer %s deny: nothing is judged', async (_, answer) => {
    const { agent, phone, model, judging, candidates } = guarded({ authorize: async () => answer() as never })
    const { id } = await agent.awaitSignal(wait, target)
    await phone.deliver(message('1', 'Your code is 482913.'))
    await soon(async () => (await candidates(id))?.map(([, state]) => state)).toEqual(['denied'])
    expect([judging.callCount, model.callCount]).toEqual([0, 0])
  })

  it('[V4.10] policies that fail after the match deny the result, and the thread learns that once', async () => {
    let asked = 0
    const { agent, phone, model } = guarded({
      async authorize() {
        if (++asked > 1) throw new Error('down')
        return { allowed: true, policyIds: ['all'], revision: '1' }
      },
    })
    await agent.awaitSignal(wait, target)
    await phone.deliver(message('1', 'Your code is 482913.'))
    await soon(() => model.callCount).toBe(1)
    expect(reasons(model)).toEqual(['denied'])
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('482913')
  })

  it('[V4.10] a rule that is saved between the match and the delivery denies the result: the thread learns that alone', async () => {
    const policies = new CedarPolicies({ logger: silentLogger })
    const { agent, phone, model, judging } = guarded({
      async authorize(request) {
        const decision = await policies.authorize(request)
        await policies.savePolicies('ada', { forbid_sms: forbid('sms') })
        return decision
      },
    })
    await agent.awaitSignal(wait, target)
    await phone.deliver(message('1', 'Your code is 482913.'))
    await soon(() => model.callCount).toBe(1)
    expect(judging.callCount).toBe(1)
    expect(reasons(model)).toEqual(['denied'])
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('482913')
  })

  it('[V4.3] [V4.10] policies that can not be asked deny', async () => {
    const engine = () => Promise.reject(new Error('not installed'))
    const { agent, phone, judging, candidates } = guarded(new CedarPolicies({ engine, logger: silentLogger }))
    const { id } = await agent.awaitSignal(wait, target)
    await phone.deliver(message('1', 'Your code is 482913.'))
    await soon(() => candidates(id)).toEqual([['sms', 'denied', 'no policy permits it']])
    expect(judging.callCount).toBe(0)
  })

  it('[G1.7] an object that is no policies is rejected by name', () => {
    expect(() => new Heed({ storage: new InMemoryStore(), policies: {} as never })).toThrow(/policies must be/)
  })
})
