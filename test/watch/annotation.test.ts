import { describe, expect, it } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, InMemoryStore, silentLogger, type HeedConfig } from '../../src/index.ts'
import { CedarPolicies } from '../../src/policy/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { gate, soon } from '../thread/said.ts'
import { call, code, message, opened, reasons, target, watching } from './watching.ts'

const found = call('complete_task', { result: '482913' })
const sms = { description: 'the code', expected_channels: ['sms'], result_schema: code }
/** Codes only from verified senders. */
const verifiedCodes = `forbid(principal, action in [Policy::Action::"receive_signal", Policy::Action::"receive_message"], resource)
  when { context.categories.contains("verification_code") && !resource.verified };`
const unverified = (id: string) => ({ ...message(id, 'Your code is 482913.'), sender: { address: '+15550177', verified: false } })

/** An annotator that answers when its gate is open. */
function gated(categories: string[] = []): { script: Script; open: () => void } {
  const answer = gate()
  return { script: () => ({ toolCalls: [{ toolName: 'annotate_message', input: { categories } }], gate: answer.promise }), open: answer.open }
}

describe('policies about categories', () => {
  it('[V4.15] wait for the annotation where a watch names channels alone: a code of an unverified sender is denied, and never judged', async () => {
    const annotator = gated()
    const policies = new CedarPolicies({ policies: { verified_codes: verifiedCodes }, logger: silentLogger })
    const { agent, adapter, judging, model } = watching({ script: () => 'Noted.', judge: () => found, annotator: annotator.script, policies })
    const { id } = await agent.awaitSignal(sms, target)
    await adapter.deliver(unverified('1'))
    await soon(async () => (await agent.getWatch({ id }))?.candidates.map(({ state, attempts }) => [state, attempts])).toEqual([['pending', 1]])
    expect(judging.callCount).toBe(0)
    annotator.open()
    await soon(async () => (await agent.getWatch({ id }))?.candidates.map(({ state, detail }) => [state, detail])).toEqual([['denied', 'verified_codes']])
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
    expect(judging.callCount).toBe(1)
  })

  it.each<[string, NonNullable<HeedConfig['policies']>]>([
    ['no policies about categories', new CedarPolicies({ policies: { no_mail: 'forbid(principal, action, resource in Policy::Channel::"email");' }, logger: silentLogger })],
    ['policies about the taint', new CedarPolicies({
      policies: { tainted: 'forbid(principal, action == Policy::Action::"approve_tool", resource) unless { context.tainted_by.isEmpty() };' }, logger: silentLogger,
    })],
  ])('[V4.15] [V2.15] with %s, a watch for channels alone does not wait for the annotator', async (_, policies) => {
    const { agent, adapter, model } = watching({ script: () => 'Noted.', judge: () => found, annotator: gated().script, policies })
    await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V4.15] policies of the program’s own that do not say what they read are asked with the categories', async () => {
    const annotator = gated()
    const asked: unknown[] = []
    const policies = { authorize: async ({ context }: { context?: unknown }) => (asked.push(context), { allowed: true, policyIds: [], revision: '' }) }
    const { agent, adapter, model } = watching({ script: () => 'Noted.', judge: () => found, annotator: annotator.script, policies })
    await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(async () => (await agent.listWatches()).watches.length).toBe(1)
    annotator.open()
    await soon(() => reasons(model)).toEqual(['matched'])
    expect(asked).toEqual([{ categories: ['verification_code', 'auth'] }, { categories: ['verification_code', 'auth'] }])
  })

  it('[V4.15] [V1.38] decide by the labels of rules after three failures of the annotator', async () => {
    const clock = virtualClock()
    const policies = new CedarPolicies({ policies: { verified_codes: verifiedCodes }, logger: silentLogger })
    const failing: Script = () => { throw new Error('down') }
    const { agent, adapter, model, judging } = watching({ clock, script: () => 'Noted.', judge: () => found, annotator: failing, policies })
    const { id } = await agent.awaitSignal(sms, target)
    await adapter.deliver(unverified('1'))
    await adapter.deliver(message('2', 'Your code is 482913.'))
    expect(judging.callCount).toBe(0)
    await clock.advance(60_000)
    await soon(() => reasons(model)).toEqual(['matched'])
    expect(await agent.getWatch({ id })).toMatchObject({ candidates: [{ state: 'denied', detail: 'verified_codes' }, { state: 'matched' }] })
    expect(judging.callCount).toBe(1)
  })

  const payrolls = 'forbid(principal, action == Policy::Action::"receive_signal", resource) when { context.categories.contains("payroll") };'

  it('[V4.18] wait while the annotator fails where the rules do not find what they name, and deny what is not annotated in the end', async () => {
    const clock = virtualClock()
    const policies = new CedarPolicies({ policies: { payrolls }, logger: silentLogger })
    await policies.load('ada')
    const failing: Script = () => { throw new Error('down') }
    const { agent, adapter, judging } = watching({ clock, script: () => 'Noted.', judge: () => found, annotator: failing, policies })
    const { id } = await agent.awaitSignal({ ...sms, expires_in_minutes: 120 }, target)
    await adapter.deliver(message('1', 'The salary of Bob'))
    const state = async () => (await agent.getWatch({ id }))?.candidates.map((one) => [one.state, one.detail])
    await clock.advance(60_000)
    await soon(async () => (await agent.explain({ watchId: id }))?.messages[0]?.reason).toBe('pending')
    expect([await state(), judging.callCount]).toEqual([[['pending', undefined]], 0])
    await clock.advance(3_600_000)
    await soon(state).toEqual([['denied', 'categories_unknown']])
    expect(judging.callCount).toBe(0)
  })

  it('[V4.18] decide when the annotator answers at last: by its categories, and not by those of the rules', async () => {
    const clock = virtualClock()
    const policies = new CedarPolicies({ policies: { payrolls }, logger: silentLogger })
    await policies.load('ada')
    const annotator: Script = ({ prompt, index }) => {
      if (index < 8) throw new Error('down')
      return call('annotate_message', { categories: JSON.stringify(prompt).includes('salary') ? ['payroll'] : [] })
    }
    const { agent, adapter, model, judging } = watching({ clock, script: () => 'Noted.', judge: () => found, annotator, policies })
    const { id } = await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'The salary of Bob'), message('2', 'Your code is 482913.'))
    await clock.advance(600_000)
    await soon(() => reasons(model)).toEqual(['matched'])
    expect(await agent.getWatch({ id })).toMatchObject({ candidates: [{ state: 'denied', detail: 'payrolls' }, { state: 'matched' }] })
    expect(judging.callCount).toBe(1)
  })

  it('[V1.5] [V4.15] a message that makes the annotator fail does not delay those after it', async () => {
    const policies = new CedarPolicies({ policies: { verified_codes: verifiedCodes }, logger: silentLogger })
    const annotator: Script = ({ prompt }) => {
      if (JSON.stringify(prompt).includes('POISON')) throw new Error('refused')
      return call('annotate_message', { categories: [] })
    }
    const { agent, adapter, model } = watching({ clock: virtualClock(), script: () => 'Noted.', judge: () => found, annotator, policies })
    await agent.awaitSignal(sms, target)
    await adapter.deliver({ ...unverified('1'), text: 'POISON' })
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V1.38] a watch for a code gets it at once, also while the annotator fails', async () => {
    const failing: Script = () => { throw new Error('down') }
    const { agent, adapter, model } = watching({ clock: virtualClock(), script: () => 'Noted.', judge: () => found, annotator: failing })
    await agent.awaitSignal({ description: 'the code', expected_categories: ['verification_code'], result_schema: code }, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V4.15] [V2.12] decide by categories of their own, which the annotator is offered', async () => {
    const payroll = 'forbid(principal, action == Policy::Action::"receive_signal", resource) when { context.categories.contains("payroll") };'
    const policies = new CedarPolicies({ policies: { payroll }, logger: silentLogger })
    const annotator: Script = () => call('annotate_message', { categories: ['payroll'] })
    const { agent, adapter, judging } = watching({ script: () => 'Noted.', judge: () => found, annotator, policies })
    const { id } = await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'The salary of Bob'))
    await soon(async () => (await agent.getWatch({ id }))?.candidates.map(({ state, detail }) => [state, detail])).toEqual([['denied', 'payroll']])
    expect(judging.callCount).toBe(0)
    expect(await policies.namedCategories('ada')).toEqual(['payroll'])
  })

  it('[V4.15] categories that policies name are offered however their texts write them, and nothing else of the texts is', async () => {
    const named = async (...conditions: string[]) => {
      const rules = conditions.map((condition, nth) => [`rule${nth}`, `@note("not_me") forbid(principal, action == Policy::Action::"receive_signal", resource) when { ${condition} };`])
      const policies = new CedarPolicies({ policies: Object.fromEntries(rules) as Record<string, string>, logger: silentLogger })
      return policies.namedCategories('ada')
    }
    expect(await named('context.categories.contains("p\\u{61}yroll")')).toEqual(['payroll'])
    expect(await named('context.categories.containsAny(["\\x70ayroll", "b\\u{6F}nus"])', 'context["categories"].contains("auth")')).toEqual(['payroll', 'bonus', 'auth'])
    expect(await named('["payroll"].containsAll(context.categories) // "comment"\n && resource in Policy::Channel::"email"')).toEqual(['payroll'])
    expect(await named('context.tainted_by.contains("email")', 'resource in Policy::Channel::"sms"')).toEqual([])
    expect(await named(`context.categories.contains("payroll")${' && true'.repeat(1_500)}`)).toEqual(['payroll'])
  })

  it('[V4.15] a request without categories is denied if a policy reads them in any form, and decided if none does', async () => {
    const request = {
      tenant: 'ada', action: 'receive_signal', principal: { type: 'agent', id: 'a', resourceId: 'ada' },
      resource: { type: 'message_source', channel: { kind: 'sms', id: 'phone' }, verified: true }, context: { categories: 'unknown' },
    } as const
    const forms = ['context.categories.contains("auth")', 'context["categories"].contains("auth")', 'context["\\u{63}ategories"].contains("auth")']
    for (const form of forms) {
      const policies = new CedarPolicies({ policies: { about: `forbid(principal, action == Policy::Action::"receive_signal", resource) when { ${form} };` }, logger: silentLogger })
      expect(await policies.authorize(request)).toMatchObject({ allowed: false, failure: 'categories_unknown' })
      expect(await policies.readsCategories('ada')).toBe(true)
      expect(await policies.authorize({ ...request, context: { categories: [] } })).toMatchObject({ allowed: true })
    }
    const policies = new CedarPolicies({ logger: silentLogger })
    expect([(await policies.authorize(request)).allowed, await policies.readsCategories('ada')]).toEqual([true, false])
    await policies.savePolicies('ada', { verified_codes: verifiedCodes })
    expect([(await policies.authorize(request)).failure, await policies.readsCategories('ada')]).toEqual(['categories_unknown', true])
    const broken = new CedarPolicies({ engine: () => Promise.reject(new Error('not installed')), logger: silentLogger })
    expect(await broken.readsCategories('ada')).toBe(true)
  })
})

describe('categories of a watch', () => {
  it('[V1.30] are found in the look-back: messages that were annotated before the watch are annotated again', async () => {
    const annotator: Script = ({ tools, prompt }) => {
      const isOffered = JSON.stringify(tools).includes('"parcel_arrived"')
      return call('annotate_message', { categories: isOffered && JSON.stringify(prompt).includes('parcel') ? ['parcel_arrived'] : [] })
    }
    const { agent, adapter, model, judging, heed } = watching({ script: () => 'Noted.', judge: () => call('complete_task', { result: { matched: true } }), annotator })
    await adapter.deliver(message('1', 'Your parcel is here.'), message('2', 'Hello.'))
    await heed.tick()
    const { id } = await agent.awaitSignal({ description: 'the parcel', expected_categories: ['parcel_arrived'], look_back_seconds: 60 }, target)
    await soon(() => reasons(model)).toEqual(['matched'])
    expect((await agent.getWatch({ id }))?.candidates.map(({ categories }) => categories)).toEqual([['parcel_arrived']])
    expect(judging.callCount).toBe(1)
  })

  it('[V1.31] are all offered to the annotator, whatever their number', async () => {
    const last = 'zz_the_last'
    const annotator: Script = ({ tools }) => call('annotate_message', { categories: JSON.stringify(tools).includes(last) ? [last] : [] })
    const { agent, adapter, model } = watching({ script: () => 'Noted.', judge: () => call('complete_task', { result: { matched: true } }), annotator })
    const wait = { description: 'rare', look_back_seconds: 0 }
    for (let nth = 0; nth < 9; nth += 1) {
      const labels = Array.from({ length: 32 }, (_, label) => `label_${nth * 32 + label}`)
      await agent.awaitSignal({ ...wait, expected_categories: labels }, { ...target, threadId: `t-${nth}` })
    }
    await agent.awaitSignal({ ...wait, expected_categories: [last] }, target)
    await adapter.deliver(message('1', 'Something rare.'))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it.each([
    ['zero-width characters', 'Your co\u200bde is 48\u200b2913.'], ['a reversed override', 'Your \u202ecode\u202c is \u2066482913\u2069.'],
    ['fullwidth forms', 'Ｙｏｕｒ ｃｏｄｅ ｉｓ ４８２９１３．'], ['Cyrillic letters', 'Your сodе is 482913.'], ['Greek letters', 'Your cοde is 482913.'],
    ['mathematical digits', 'Your code is 𝟒𝟖𝟐𝟗𝟏𝟑.'], ['tag characters', 'Your c\u{e0061}ode is 482\u{e0020}913.'],
  ])('[V2.13] case 34: rules read a text as it is shown: %s', async (_, text) => {
    const { agent, adapter, model } = watching({ script: () => 'Noted.', judge: () => found })
    await agent.awaitSignal({ description: 'the code', expected_categories: ['verification_code'], result_schema: code }, target)
    await adapter.deliver(message('1', text))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V2.13] rules read the subject as it is shown too', async () => {
    const { agent, adapter, model } = watching({ script: () => 'Noted.', judge: () => found })
    await agent.awaitSignal({ description: 'the code', expected_categories: ['verification_code'], result_schema: code }, target)
    await adapter.deliver({ ...message('1', 'See above.'), subject: 'Your c\u200bode: 482\u200b913' })
    await soon(() => reasons(model)).toEqual(['matched'])
  })
})

describe('the slots of a process', () => {
  it('[V1.32] an annotator that does not answer delays neither other channels nor the judges of watches', async () => {
    const [slow, quick] = [directChannel({ kind: 'email' }), directChannel({ kind: 'sms' })]
    const model = scriptedModel(() => 'Noted.')
    const agent = new Agent({ id: 'assistant', model, watches: { model: scriptedModel(() => found) } })
    opened({
      agents: { agent }, storage: new InMemoryStore(), logger: silentLogger,
      channels: [
        new Channel({ id: 'mail', adapter: slow, resourceId: 'ada', annotator: scriptedModel(gated().script) }),
        new Channel({ id: 'phone', adapter: quick, resourceId: 'ada' }),
      ],
    })
    await agent.awaitSignal({ description: 'the code', expected_categories: ['verification_code'], expected_channels: ['sms'], result_schema: code }, target)
    await slow.deliver(...Array.from({ length: 40 }, (_, nth) => message(`m-${nth}`, 'A letter.', 'a@example.com')))
    await quick.deliver(message('1', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V1.35] policies that never answer deny after ten seconds, and later messages are worked on', async () => {
    const clock = virtualClock()
    let asked = 0
    const authorize = () => (++asked === 2 ? new Promise<never>(() => {}) : Promise.resolve({ allowed: true, policyIds: [], revision: '' }))
    const { agent, adapter, model } = watching({ clock, script: () => 'Noted.', judge: () => call('report_signal', { result: '482913' }), policies: { authorize } })
    const { id } = await agent.awaitSignal({ ...sms, mode: 'continuous', expires_in_minutes: 60 }, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => asked).toBe(2)
    await adapter.deliver(message('2', 'Your code is 482914.'))
    await clock.advance(11_000)
    await soon(() => reasons(model)).toEqual(['denied', 'hit'])
    expect((await agent.getWatch({ id }))?.hits).toBe(2)
  })

  it('[V1.35] policies that do not answer before a delivery delay none of another thread', async () => {
    const clock = virtualClock()
    const asked: string[] = []
    const policies = {
      readsCategories: async () => false,
      // The first question, before the message is judged, is answered; the one before its delivery is not.
      authorize: async ({ resource }: { resource: { verified?: boolean } }) => {
        const isHanging = resource.verified === false && asked.push('unverified') === 2
        return isHanging ? new Promise<never>(() => {}) : { allowed: true, policyIds: [], revision: '' }
      },
    } as unknown as NonNullable<HeedConfig['policies']>
    const { agent, adapter } = watching({ clock, script: () => 'Noted.', judge: () => call('report_signal', { result: '482913' }), policies })
    await agent.awaitSignal({ ...sms, mode: 'continuous' }, target)
    await adapter.deliver(unverified('1'))
    await soon(() => asked.length).toBe(2)
    const { id } = await agent.awaitSignal({ ...sms, mode: 'continuous', expected_contacts: ['bank'] }, { ...target, threadId: 'other' })
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await soon(async () => (await agent.getWatch({ id }))?.hits).toBe(1)
    await clock.advance(10_000)
  })

  it('[V1.35] a judge’s model that is never resolved is a failed attempt', async () => {
    const clock = virtualClock()
    let asked = 0
    const judging = scriptedModel(() => found)
    const watches = { model: () => (++asked === 1 ? new Promise<never>(() => {}) : Promise.resolve(judging)) }
    const { agent, adapter, model } = watching({ clock, script: () => 'Noted.', judge: () => found, agent: { watches } })
    const { id } = await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => asked).toBe(1)
    await clock.advance(15_000)
    await soon(() => reasons(model)).toEqual(['matched'])
    expect((await agent.getWatch({ id }))?.candidates[0]?.attempts).toBe(2)
  })
})

it('[V1.18] [V1.38] an annotator whose answer is cut before its call is asked again: the message gets its categories', async () => {
  const clock = virtualClock()
  const { agent, adapter, model } = watching({
    clock, script: () => 'Noted.', judge: () => found,
    annotator: ({ index }) => (index === 0 ? { text: 'Well, this', finishReason: 'length' } : call('annotate_message', { categories: ['parcel'] })),
  })
  await agent.awaitSignal({ ...sms, expected_categories: ['parcel'] }, target)
  await adapter.deliver(message('1', 'It is at your door.'))
  await soon(async () => {
    await clock.advance(1_000)
    return reasons(model)
  }).toEqual(['matched'])
})
