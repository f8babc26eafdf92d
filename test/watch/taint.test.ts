import { describe, expect, it, vi } from 'vitest'
import { Agent, createTool, Memory, silentLogger, type ApprovalContext, type HeedConfig, type ToolContext } from '../../src/index.ts'
import { CedarPolicies, type PolicyRequest } from '../../src/policy/index.ts'
import { scriptedModel, type Script, type ScriptedModel } from '../../src/testing/index.ts'
import { idle, soon } from '../thread/said.ts'
import { call, code, message, reasons, target, watching, type Setting } from './watching.ts'

const wait = { description: 'the code', expected_channels: ['sms'], result_schema: code }
const bySms = ['sms', 'sms/phone']
/** The agent may not run these by itself on the word of a message. */
const guarded = (tool: string) => ({
  [`tainted_${tool}`]: `forbid(principal is Policy::Agent, action == Policy::Action::"approve_tool", resource == Policy::Tool::"${tool}")
    unless { context.tainted_by.isEmpty() };`,
})

/** A tool that records its inputs and the taint of each call. */
function payTool(paid: string[], contexts: Array<Pick<ToolContext, 'taintedBy'>> = [], approvals?: ApprovalContext[]) {
  return createTool({
    id: 'pay', description: 'Pays.',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as const,
    ...(approvals && { requireApproval: (_: unknown, context: ApprovalContext) => approvals.push(context) > 0 && context.taintedBy.length > 0 }),
    execute: async (input, context) => {
      contexts.push(context)
      paid.push((input as { to: string }).to)
      return { paid: true }
    },
  })
}

/** Calls the tool once per turn, then answers. */
const payOnce: Script = ({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Done.' : call('pay', { to: 'Ann' }))
const judge: Script = () => call('complete_task', { result: '482913' })

function paying(more: Partial<Setting> = {}) {
  const paid: string[] = []
  const contexts: Array<Pick<ToolContext, 'taintedBy'>> = []
  const policies = new CedarPolicies({ policies: guarded('pay'), logger: silentLogger })
  const world = watching({ script: payOnce, judge, policies, ...more, agent: { tools: { pay: payTool(paid, contexts) }, ...more.agent } })
  return { ...world, paid, contexts }
}

async function suspendedOn(agent: Agent, threadId = target.threadId) {
  await soon(async () => (await agent.activeRun({ ...target, threadId }))?.status).toBe('suspended')
  const { runs } = await agent.listSuspendedRuns({ threadId })
  return runs[0]?.toolCalls[0]
}

async function delivered({ agent, adapter }: Pick<ReturnType<typeof watching>, 'agent' | 'adapter'>) {
  await agent.awaitSignal(wait, target)
  await adapter.deliver(message('1', 'Your code is 482913.'))
}

describe('a value that a watch delivered', () => {
  it('[V4.13] [V4.14] case 31: a call of a turn that read it needs an approval by policy; the same call before does not', async () => {
    const { agent, adapter, paid, contexts } = paying()
    await agent.sendMessage('Pay Ann.', target).outcome
    await idle(agent, target)
    expect([paid, contexts.map(({ taintedBy }) => taintedBy)]).toEqual([['Ann'], [[]]])
    await delivered({ agent, adapter })
    const waiting = await suspendedOn(agent)
    expect(waiting).toMatchObject({ toolName: 'pay', requiresApproval: true, request: { taintedBy: bySms } })
    expect(paid).toEqual(['Ann'])
    await agent.sendToolApproval({ ...target, approved: true })
    await idle(agent, target)
    expect([paid, contexts.at(-1)?.taintedBy]).toEqual([['Ann', 'Ann'], bySms])
  })

  it('[V4.14] case 31: stays visible in later turns and after a restart, and other threads are not concerned', async () => {
    const first = paying()
    await delivered(first)
    await suspendedOn(first.agent)
    await first.heed.close()

    const { agent, paid } = paying({ file: first.file })
    expect(await suspendedOn(agent)).toMatchObject({ request: { taintedBy: bySms } })
    await agent.sendToolApproval({ ...target, approved: false })
    await idle(agent, target)
    await agent.sendMessage('Pay Ann now.', target).outcome
    expect(await suspendedOn(agent)).toMatchObject({ request: { taintedBy: bySms } })
    expect(paid).toEqual([])
    await agent.sendMessage('Pay Ann.', { ...target, threadId: 'another' }).outcome
    await idle(agent, { ...target, threadId: 'another' })
    expect(paid).toEqual(['Ann'])
  })

  it('[V4.14] case 31: what was answered with it is tainted too, when the value itself has left the window', async () => {
    const turns = ['The code is 482913.', 'Yes.', 'Yes.', 'Yes.', call('pay', { to: 'Ann' })]
    const { agent, adapter, paid, model } = paying({ script: turns, agent: { memory: new Memory({ lastMessages: 2, semanticRecall: false }) } })
    await delivered({ agent, adapter })
    await soon(() => model.callCount).toBe(1)
    await idle(agent, target)
    for (const text of ['One?', 'Two?', 'Three?', 'Pay.']) {
      await agent.sendMessage(text, target).outcome
      if (text !== 'Pay.') await idle(agent, target)
    }
    expect(await suspendedOn(agent)).toMatchObject({ request: { taintedBy: bySms } })
    expect(reasons(model)).toEqual([])
    expect(paid).toEqual([])
  })

  it('[V4.14] case 31: is visible to the approval function of a tool, and to the tool', async () => {
    const [paid, contexts, approvals]: [string[], Array<Pick<ToolContext, 'taintedBy'>>, ApprovalContext[]] = [[], [], []]
    const { agent, adapter } = watching({ script: payOnce, judge, agent: { tools: { pay: payTool(paid, contexts, approvals) } } })
    await agent.sendMessage('Pay Ann.', target).outcome
    await idle(agent, target)
    await delivered({ agent, adapter })
    await suspendedOn(agent)
    expect(approvals.map(({ taintedBy }) => taintedBy)).toEqual([[], bySms])
    expect(paid).toEqual(['Ann'])
  })

  it('[V4.14] case 31: a called agent is tainted by its caller', async () => {
    const paid: string[] = []
    const helper = new Agent({ id: 'helper', description: 'Pays.', model: scriptedModel(payOnce), tools: { pay: payTool(paid) } })
    const script: Script = ({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Done.' : call('agent-helper', { prompt: 'Pay <watch>Ann</watch>.' }))
    const { agent, adapter } = paying({ script, agent: { agents: { helper } } })
    await agent.sendMessage('Ask the helper.', target).outcome
    await idle(agent, target)
    expect(paid).toEqual(['Ann'])
    await delivered({ agent, adapter })
    expect(await suspendedOn(agent)).toMatchObject({ toolName: 'agent-helper', request: { toolName: 'pay', path: ['assistant', 'helper', 'pay'], taintedBy: bySms } })
    await agent.sendToolApproval({ ...target, approved: true })
    await idle(agent, target)
    expect(paid).toEqual(['Ann', 'Ann'])
  })

  it('[V4.14] case 31: the answer of a called agent that read it taints the caller', async () => {
    const waiting = (model: ScriptedModel) => new Agent({ id: 'helper', description: 'Knows.', model, memory: new Memory() })
    const helper = waiting(scriptedModel(() => 'The gazelle code is 482913.'))
    const script: Script = ({ prompt, index }) => {
      if (index === 0) return 'The gazelle code is 482913.'
      const results = prompt.filter(({ role }) => role === 'tool').length
      return results === 0 ? call('agent-helper', { prompt: 'What was the gazelle code?' }) : results === 1 ? call('pay', { to: 'Ann' }) : 'Done.'
    }
    const { agent, adapter, model, paid } = paying({ script, agent: { agents: { helper }, memory: new Memory({ semanticRecall: false }) } })
    await delivered({ agent, adapter })
    await soon(() => model.callCount).toBe(1)
    await idle(agent, target)
    await agent.sendMessage('Ask, then pay.', { ...target, threadId: 'another' }).outcome
    expect(await suspendedOn(agent, 'another')).toMatchObject({ toolName: 'pay', request: { taintedBy: bySms } })
    expect(paid).toEqual([])
  })

  it('[V4.14] case 31: a message that recall quotes on another thread taints it', async () => {
    const script: Script = ({ index, prompt }) => (index === 0 ? 'The gazelle code is 482913.' : prompt.at(-1)?.role === 'tool' ? 'Done.' : call('pay', { to: 'Ann' }))
    const { agent, adapter, model, paid } = paying({ script, agent: { memory: new Memory() } })
    await delivered({ agent, adapter })
    await soon(() => model.callCount).toBe(1)
    await idle(agent, target)
    await agent.sendMessage('What was the gazelle code?', { ...target, threadId: 'another' }).outcome
    expect(await suspendedOn(agent, 'another')).toMatchObject({ request: { taintedBy: bySms } })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('recalled-messages')
    expect(paid).toEqual([])
  })

  it('[V4.14] case 31: what a tainted run writes to working memory taints each run that reads it, on other threads and after a restart', async () => {
    const script: Script = ({ index, prompt }) => {
      if (index === 0) return call('updateWorkingMemory', { memory: 'Pay Ann at 482913.' })
      return prompt.some(({ role }) => role === 'tool') ? 'Done.' : call('pay', { to: 'Ann' })
    }
    const agent = { memory: new Memory({ semanticRecall: false, workingMemory: { enabled: true } }) }
    const first = paying({ script, agent })
    await delivered(first)
    await soon(() => first.model.callCount).toBe(2)
    await idle(first.agent, target)
    await first.agent.sendMessage('Pay Ann.', { ...target, threadId: 'another' }).outcome
    expect(await suspendedOn(first.agent, 'another')).toMatchObject({ request: { taintedBy: bySms } })
    expect(JSON.stringify(first.model.calls)).not.toContain('taintedBy')
    await first.heed.close()

    const later = paying({ file: first.file, agent: { memory: new Memory({ semanticRecall: false, workingMemory: { enabled: true } }) } })
    await later.agent.sendMessage('Pay Ann.', { ...target, threadId: 'third' }).outcome
    expect(await suspendedOn(later.agent, 'third')).toMatchObject({ request: { taintedBy: bySms } })
    expect([...first.paid, ...later.paid]).toEqual([])
    // The program replaces what the message led to.
    const memory = await later.agent.getMemory()
    await memory.updateWorkingMemory({ resourceId: target.resourceId, workingMemory: 'Pay nobody.' })
    await later.agent.sendMessage('Pay Ann.', { ...target, threadId: 'fourth' }).outcome
    await idle(later.agent, { ...target, threadId: 'fourth' })
    expect(later.paid).toEqual(['Ann'])
  })

  it('[V4.14] a field that a tainted run merges into working memory taints all of it; a restored version has the taint that it had', async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' }, code: { type: 'string' } } } as const
    const script: Script = ({ index, prompt }) => {
      if (index === 0) return call('updateWorkingMemory', { memory: { code: '482913' } })
      return prompt.some(({ role }) => role === 'tool') ? 'Done.' : call('pay', { to: 'Ann' })
    }
    const { agent, adapter, model, paid } = paying({ script, agent: { memory: new Memory({ semanticRecall: false, workingMemory: { enabled: true, schema } }) } })
    const memory = await agent.getMemory()
    const of = { resourceId: target.resourceId }
    await memory.updateWorkingMemory({ ...of, workingMemory: { name: 'Ada' } })
    await delivered({ agent, adapter })
    await soon(() => model.callCount).toBe(2)
    await idle(agent, target)
    await memory.updateWorkingMemory({ ...of, workingMemory: { name: 'Ada L.' } })
    await agent.sendMessage('Pay Ann.', { ...target, threadId: 'another' }).outcome
    expect(await suspendedOn(agent, 'another')).toMatchObject({ request: { taintedBy: bySms } })
    await memory.undoWorkingMemory({ ...of, version: 1 })
    await agent.sendMessage('Pay Ann.', { ...target, threadId: 'third' }).outcome
    await idle(agent, { ...target, threadId: 'third' })
    expect(paid).toEqual(['Ann'])
    await memory.undoWorkingMemory({ ...of, version: 2 })
    await agent.sendMessage('Pay Ann.', { ...target, threadId: 'fourth' }).outcome
    expect(await suspendedOn(agent, 'fourth')).toMatchObject({ request: { taintedBy: bySms } })
  })

  it('[V4.14] a watch that ends without a message taints nothing, and no prompt contains the mark', async () => {
    const { agent, adapter, model, paid } = paying()
    const { id } = await agent.awaitSignal(wait, target)
    await agent.cancelWatch({ id })
    await soon(() => paid).toEqual(['Ann'])
    await idle(agent, target)
    expect(reasons(model)).toEqual(['cancelled'])
    await delivered({ agent, adapter })
    await suspendedOn(agent)
    expect(JSON.stringify(model.calls)).not.toContain('taintedBy')
  })
})

describe('policies about the calls of an agent', () => {
  it('[V4.13] are asked before a call begins, with the agent, the tool and the tenant of the run', async () => {
    const asked: PolicyRequest[] = []
    const authorize = async (request: PolicyRequest) => ({ allowed: asked.push(request) > 0, policyIds: [], revision: '' })
    const { agent, paid } = paying({ policies: { authorize } })
    await agent.sendMessage('Pay Ann.', target).outcome
    await idle(agent, target)
    expect(paid).toEqual(['Ann'])
    expect(asked).toEqual([{
      tenant: 'ada', action: 'approve_tool', principal: { type: 'agent', id: 'assistant', resourceId: 'ada' },
      resource: { type: 'tool', name: 'pay', agentId: 'assistant', resourceId: 'ada' }, context: { taintedBy: [] },
    }])
    expect(await agent.generate('Pay Ann.')).toMatchObject({ text: 'Done.' })
    expect(asked.at(-1)).toMatchObject({ tenant: '*', principal: { resourceId: '*' } })
  })

  const unusable: Array<[string, NonNullable<HeedConfig['policies']>]> = [
    ['fail', { authorize: () => Promise.reject(new Error('no answer')) }],
    ['can not be loaded', new CedarPolicies({ engine: () => Promise.reject(new Error('not installed')), logger: silentLogger })],
    ['answer something else', { authorize: () => Promise.resolve({ allowed: 'yes' } as never) }],
  ]

  it.each(unusable)('[V4.13] that %s leave the call to an approval', async (_, policies) => {
    const { agent, paid } = paying({ policies })
    await agent.sendMessage('Pay Ann.', target).outcome
    expect(await suspendedOn(agent)).toMatchObject({ toolName: 'pay', requiresApproval: true })
    expect(paid).toEqual([])
    await agent.sendToolApproval({ ...target, approved: true })
    await idle(agent, target)
    expect(paid).toEqual(['Ann'])
  })

  it('[V4.13] that never answer end with an abort of the run, and the call is not run', async () => {
    const authorize = vi.fn(() => new Promise<never>(() => {}))
    const { agent, paid } = paying({ policies: { authorize } })
    await agent.sendMessage('Pay Ann.', target).stored
    await soon(() => authorize.mock.calls.length).toBe(1)
    await agent.abortRun(target)
    await idle(agent, target)
    expect(paid).toEqual([])
    const { messages } = (await (await agent.getMemory()).recall(target))
    expect(JSON.stringify(messages)).toContain('The call was not run.')
  })
})
