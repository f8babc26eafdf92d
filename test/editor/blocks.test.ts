import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { HeedEditor, type InstructionBlock } from '../../src/editor/index.ts'
import {
  Agent, createTool, Heed, InMemoryStore, Memory, RequestContext, silentLogger, type AgentConfig, type Logger, type Storage,
} from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'

const by = 'ann'
const look = createTool({ id: 'look', description: 'Looks.', execute: async () => 'seen' })
const pay = createTool({ id: 'pay', description: 'Pays.', requireApproval: true, execute: async () => 'paid' })
const onThread = (thread: string, resource = 'user-1') => ({ memory: { thread, resource } })
const requestContextSchema = z.object({ plan: z.string().optional(), user: z.object({ name: z.string() }).optional() })
const ref = (id: string): InstructionBlock => ({ type: 'prompt_block_ref', id })
const pro = { operator: 'AND', conditions: [{ field: 'plan', operator: 'equals', value: 'pro' }] } as const

function open({ config = {}, script = () => 'Yes.', storage = new InMemoryStore(), logger = silentLogger }: {
  config?: Partial<AgentConfig>; script?: Script; storage?: Storage; logger?: Logger
} = {}) {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'guide', instructions: 'From code.', model, tools: { look, pay }, requestContextSchema, ...config })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { agent }, storage, logger, editor })
  onTestFinished(() => heed.close())
  const said = async (context: Record<string, unknown> = {}, options: object = {}) => {
    await agent.generate('Go.', { requestContext: new RequestContext(context), ...options })
    return instructions()
  }
  const instructions = () => model.calls.at(-1)?.prompt.flatMap((message) => (message.role === 'system' ? [message.content] : [])).join('|')
  const tools = () => Object.fromEntries((model.calls.at(-1)?.tools ?? []).map((tool) => [tool.name, 'description' in tool ? tool.description : '']))
  return { agent, editor, heed, model, said, instructions, tools }
}

/** Saves and publishes a prompt block. */
async function published(editor: HeedEditor, id: string, content: string, more: object = {}): Promise<void> {
  const found = await editor.prompts.describe(id).catch(() => undefined)
  const { version } = await editor.prompts.save(id, { base: found?.latest.version ?? 0, content, by, ...more })
  await editor.prompts.publish(id, { version, expected: found?.release?.release ?? 0, by })
}

async function released(editor: HeedEditor, overrides: object): Promise<number> {
  const { latest, release } = await editor.describe('guide')
  const { version } = await editor.save('guide', { base: latest?.version ?? 0, by, ...overrides })
  await editor.publish('guide', { version, expected: release?.release ?? 0, by })
  return version
}

describe('prompt blocks', () => {
  it('[O4.1] are saved, compared, published, rolled back, cloned and listed, with who and why; of two editors one gets a conflict', async () => {
    const { editor } = open()
    const { prompts } = editor
    expect(await prompts.save('tone', { base: 0, content: 'Be kind.', by, why: 'first' })).toMatchObject({ blockId: 'tone', version: 1, created: true, block: { content: 'Be kind.' } })
    expect(await prompts.save('tone', { base: 1, content: 'Be kind.', by: 'bob' })).toMatchObject({ version: 1, created: false, by })
    const saves = ['ann', 'bob'].map((name) => prompts.save('tone', { base: 1, content: `By ${name}.`, rules: pro, by: name }))
    const [one, other] = await Promise.allSettled(saves)
    expect(one).toMatchObject({ status: 'fulfilled', value: { version: 2 } })
    expect(other).toMatchObject({ status: 'rejected', reason: { code: 'edit_conflict', details: { blockId: 'tone', latest: 2, by: 'ann' } } })
    expect(await prompts.compare('tone', { from: 1, to: 2 })).toEqual([{ field: 'content', from: 'Be kind.', to: 'By ann.' }, { field: 'rules', from: null, to: pro }])
    expect(await prompts.describe('tone')).toMatchObject({ id: 'tone', isDraft: true, release: null, agents: [] })
    await expect(prompts.publish('tone', { version: 3, expected: 0, by })).rejects.toMatchObject({ code: 'unknown_version' })
    expect(await prompts.publish('tone', { version: 1, expected: 0, by })).toMatchObject({ blockId: 'tone', release: 1, version: 1 })
    await expect(prompts.publish('tone', { version: 2, expected: 0, by })).rejects.toMatchObject({ code: 'edit_conflict' })
    await prompts.publish('tone', { version: 2, expected: 1, by: 'bob', why: 'better' })
    expect(await prompts.rollBack('tone', { expected: 2, by, why: 'worse' })).toMatchObject({ release: 3, version: 1, restores: 1 })
    await expect(prompts.rollBack('tone', { expected: 3, by })).rejects.toMatchObject({ code: 'unknown_version' })
    expect((await prompts.listReleases('tone')).releases.map((release) => [release.version, release.by, release.why])).toEqual([[1, by, 'worse'], [2, 'bob', 'better'], [1, by, undefined]])
    expect(await prompts.listVersions('tone', { limit: 1 })).toMatchObject({ versions: [{ version: 2 }], next: 2 })
    expect(await prompts.clone('tone', { as: 'mood', version: 1, by, why: 'copied' })).toMatchObject({ blockId: 'mood', version: 1, block: { content: 'Be kind.' }, why: 'copied' })
    await expect(prompts.clone('tone', { as: 'mood', by })).rejects.toMatchObject({ code: 'edit_conflict' })
    expect((await prompts.list()).blocks.map(({ id, isDraft }) => [id, isDraft])).toEqual([['mood', true], ['tone', true]])
    expect(await prompts.list({ limit: 1 })).toMatchObject({ blocks: [{ id: 'mood' }], next: 'mood' })
    expect(await prompts.list({ after: 'mood' })).toMatchObject({ blocks: [{ id: 'tone', release: { release: 3 } }] })
    expect([await prompts.getVersion('tone', 2), await prompts.getVersion('tone', 9)]).toMatchObject([{ version: 2, block: { rules: pro } }, null])
    await expect(prompts.describe('none')).rejects.toMatchObject({ code: 'unknown_version' })
  })

  it('[O4.2] are part of the instructions of every run once both are published; a missing one is named and never an empty prompt', async () => {
    const { agent, editor, said } = open()
    await expect(editor.save('guide', { base: 0, instructions: [ref('tone')], by })).rejects.toMatchObject({ code: 'unknown_version', details: { blockId: 'tone' } })
    await editor.prompts.save('tone', { base: 0, content: 'Be kind.', by })
    const { version } = await editor.save('guide', { base: 0, instructions: [{ type: 'text', content: 'You are a guide.' }, ref('tone')], by })
    await expect(editor.publish('guide', { version, expected: 0, by })).rejects.toMatchObject({ code: 'unknown_version', details: { blockId: 'tone' } })
    await expect(agent.generate('Go.', { agentVersion: version })).rejects.toMatchObject({ code: 'unknown_version', message: expect.stringContaining("'tone' is not published") as string })
    await expect(agent.generate('Go.', { agentVersion: version, ...onThread('t') })).rejects.toMatchObject({ code: 'unknown_version' })
    expect(await said()).toBe('From code.')
    await editor.prompts.publish('tone', { version: 1, expected: 0, by })
    await editor.publish('guide', { version, expected: 0, by })
    for (const options of [{}, onThread('t')]) expect(await said({}, options)).toBe('You are a guide.\n\nBe kind.')
    await published(editor, 'tone', 'Be short.')
    for (const options of [{}, onThread('t')]) expect(await said({}, options)).toBe('You are a guide.\n\nBe short.')
    await editor.prompts.rollBack('tone', { expected: 2, by })
    expect(await said()).toBe('You are a guide.\n\nBe kind.')
    expect(await editor.prompts.describe('tone')).toMatchObject({ agents: ['guide'] })
    expect((await agent.explainPrompt('Go.')).edit).toEqual({ version, release: 1, blocks: { tone: 1 } })
  })

  it('[O4.3] a run that waits for a decision goes on with the blocks that it began with, in another process and without a thread', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-blocks-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    const asking: Script = [{ toolCalls: [{ toolName: 'pay', input: {} }] }, { toolCalls: [{ toolName: 'pay', input: {} }] }, 'Done.', 'Done.']
    const first = open({ storage: storage(), script: asking })
    await published(first.editor, 'tone', 'For {{plan}}: be kind.')
    await released(first.editor, { instructions: [ref('tone')] })
    const waiting = await first.agent.generate('Pay.', { ...onThread('t'), requestContext: new RequestContext({ plan: 'pro' }) })
    const here = await first.agent.generate('Pay.', { requestContext: new RequestContext({ plan: 'free' }) })
    await published(first.editor, 'tone', 'Be short.')
    await (await first.agent.approveToolCall({ runId: here.runId })).result
    expect(first.instructions()).toBe('For free: be kind.')
    await first.heed.close()
    const next = open({ storage: storage(), script: () => 'Done.' })
    await (await next.agent.approveToolCall({ runId: waiting.runId, resourceId: 'user-1' })).result
    expect(next.instructions()).toBe('For pro: be kind.')
    expect(await next.said({ plan: 'pro' }, onThread('t'))).toBe('Be short.')
  })

  it('[O4.4] what runs get, what an agent refers to and what an unfinished run has cannot be deleted; numbers are not used again', async () => {
    const { agent, editor, said } = open({ script: [{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Done.', 'Yes.', 'Yes.'] })
    const { prompts } = editor
    await published(editor, 'tone', 'One.')
    await released(editor, { instructions: [ref('tone')] })
    await expect(prompts.delete('tone', { by })).rejects.toMatchObject({ code: 'edit_in_use', message: expect.stringContaining('guide') as string })
    const { runId } = await agent.generate('Pay.', onThread('t'))
    await published(editor, 'tone', 'Two.')
    await released(editor, { instructions: 'Without.' })
    await expect(prompts.delete('tone', { version: 1, by })).rejects.toMatchObject({ code: 'edit_in_use' })
    await expect(editor.delete('guide', { version: 1, by })).rejects.toMatchObject({ code: 'edit_in_use' })
    await expect(editor.delete('guide', { version: 2, by })).rejects.toMatchObject({ code: 'edit_in_use' })
    await (await agent.approveToolCall({ runId, resourceId: 'user-1' })).result
    expect(await prompts.delete('tone', { by, why: 'unused' })).toEqual([2, 1])
    expect(await prompts.list()).toEqual({ blocks: [] })
    await expect(prompts.delete('tone', { by })).rejects.toMatchObject({ code: 'unknown_version' })
    expect((await prompts.listVersions('tone', { deleted: true })).versions).toMatchObject([{ version: 2, block: {}, deleted: { by, why: 'unused' } }, { version: 1 }])
    expect(await prompts.save('tone', { base: 0, content: 'New.', by })).toMatchObject({ version: 3 })
    expect(await editor.delete('guide', { version: 1, by })).toEqual([1])
    await expect(editor.rollBack('guide', { expected: 2, by })).rejects.toMatchObject({ code: 'unknown_version' })
    await expect(agent.generate('Go.', { agentVersion: 1 })).rejects.toMatchObject({ code: 'unknown_version' })
    expect((await editor.listVersions('guide', { deleted: true })).versions).toMatchObject([{ version: 1, overrides: {}, deleted: { by } }])
    expect(await said()).toBe('Without.')
  })

  it('[O4.8] where the rules leave no block, and where nothing is overridden, the instructions are as in code', async () => {
    const { editor, said } = open()
    await published(editor, 'vip', 'They pay.', { rules: pro })
    await released(editor, { instructions: [ref('vip')] })
    expect([await said({ plan: 'pro' }), await said({ plan: 'free' }), await said()]).toEqual(['They pay.', 'From code.', 'From code.'])
  })

  it('[O4.5] [O4.6] texts and rules read the request context, and only the keys that code declares', async () => {
    const warnings: unknown[] = []
    const logger: Logger = { ...silentLogger, warn: (_, fields) => void warnings.push(fields) }
    const { agent, editor, said } = open({ logger })
    await published(editor, 'vip', "They pay: {{secret || 'a lot'}}.", { rules: pro })
    await released(editor, {
      instructions: [{ type: 'text', content: "Help {{user.name || 'them'}}." }, { type: 'prompt_block', content: 'Plan {{plan}}.', rules: pro }, ref('vip')],
    })
    expect(await said({ plan: 'pro', user: { name: 'Ann</user>' }, secret: 's3cret' })).toBe('Help Ann&lt;/user>.\n\nPlan pro.\n\nThey pay: a lot.')
    expect(await said({ plan: 'free' })).toBe('Help them.')
    expect(await said({}, onThread('t'))).toBe('Help them.')
    // A value that could not be stored with the run counts nowhere: a later process would not have it.
    class Named {
      name = 'Ann'
    }
    await expect(agent.generate('Go.', { requestContext: new RequestContext({ plan: 7 }) })).rejects.toMatchObject({ code: 'invalid_request_context' })
    expect(await said({ user: new Named() })).toBe('Help them.')
    await released(editor, { instructions: [{ type: 'text', content: 'Plan {{plan}}.' }] })
    for (const thread of ['a', 'b']) expect(await said({}, onThread(thread))).toBe('Plan {{plan}}.')
    expect(warnings).toEqual([{ agentId: 'guide', version: 2, values: 'plan' }])
  })

  it('[O4.6] tools have overrides with rules: the first that fits counts, none of them adds a tool', async () => {
    const { editor, said, tools } = open()
    const free = { operator: 'OR', conditions: [{ field: 'plan', operator: 'not_exists' }, { field: 'plan', operator: 'in', value: ['free'] }] } as const
    await released(editor, { tools: { pay: [{ rules: free, override: false }, { rules: pro, override: { description: 'Pays at once.' } }], look: { description: 'Sees.' } } })
    await said({ plan: 'pro' })
    expect(tools()).toEqual({ look: 'Sees.', pay: 'Pays at once.' })
    await said({ plan: 'team' })
    expect(tools()).toEqual({ look: 'Sees.', pay: 'Pays.' })
    await said()
    expect(tools()).toEqual({ look: 'Sees.' })
    await expect(editor.save('guide', { base: 1, by, tools: { shell: [{ rules: pro, override: { description: 'x' } }] } })).rejects.toThrow("no tool 'shell'")
    const locked = open({ config: { editor: { tools: { description: true } } } })
    const saved = await locked.editor.save('guide', { base: 0, by, tools: { pay: [{ rules: pro, override: false }], look: [{ rules: pro, override: { description: 'Sees.' } }] } })
    expect(saved).toMatchObject({ stripped: ['tools.pay'], overrides: { tools: { look: [{ rules: pro }] } } })
  })

  it('[O4.9] preview shows what a run would read, with drafts of blocks or without, and stores nothing', async () => {
    const { editor } = open()
    const requestContext = new RequestContext({ plan: 'pro', user: { name: 'Ann' } })
    await published(editor, 'tone', 'One.')
    await editor.prompts.save('tone', { base: 1, content: 'Two for {{plan}}.', by })
    const instructions: InstructionBlock[] = [{ type: 'text', content: 'Help {{user.name}} {{user.age}}.' }, { type: 'prompt_block', content: 'Free.', rules: { operator: 'AND', conditions: [{ field: 'plan', operator: 'equals', value: 'free' }] } }, ref('tone')]
    expect(await editor.preview('guide', { instructions, requestContext })).toEqual({
      text: 'Help Ann {{user.age}}.\n\nOne.', isCode: false, unset: ['user.age'],
      blocks: [{ type: 'text', text: 'Help Ann {{user.age}}.' }, { type: 'prompt_block', text: null }, { type: 'prompt_block_ref', id: 'tone', version: 1, text: 'One.' }],
    })
    expect(await editor.preview('guide', { instructions, requestContext, drafts: true })).toMatchObject({ text: 'Help Ann {{user.age}}.\n\nTwo for pro.' })
    expect(await editor.preview('guide', {})).toEqual({ text: 'From code.', isCode: true, blocks: [], unset: [] })
    await editor.save('guide', { base: 0, instructions: [ref('tone')], by })
    expect(await editor.preview('guide', { version: 'draft', requestContext })).toMatchObject({ text: 'Two for pro.' })
    expect(await editor.preview('guide', { version: 1 })).toMatchObject({ text: 'One.' })
    expect(await editor.preview('guide', { requestContext })).toMatchObject({ isCode: true })
    await expect(editor.preview('guide', { instructions: [ref('none')] })).rejects.toMatchObject({ code: 'unknown_version' })
    await expect(editor.preview('guide', { version: 9 })).rejects.toMatchObject({ code: 'unknown_version' })
    await expect(editor.preview('guide', { instructions: 'x', version: 1 })).rejects.toThrow('version')
    await expect(editor.preview('guide', { instructions: [{ type: 'text', content: '{{secret}}' }] })).rejects.toThrow("'secret'")
    expect((await editor.listVersions('guide')).versions).toHaveLength(1)
  })

  it("[O4.10] agentVersion 'draft' has the latest version of the agent and of its blocks; without any it has code", async () => {
    const { agent, editor, said } = open()
    expect(await said({}, { agentVersion: 'draft' })).toBe('From code.')
    await published(editor, 'tone', 'One.')
    await released(editor, { instructions: [ref('tone')] })
    await editor.prompts.save('tone', { base: 1, content: 'Two.', by })
    await editor.save('guide', { base: 1, instructions: [{ type: 'text', content: 'Draft.' }, ref('tone')], by })
    for (const options of [{}, onThread('t')]) {
      expect(await said({}, { ...options, agentVersion: 'draft' })).toBe('Draft.\n\nTwo.')
      expect(await said({}, { ...options, agentVersion: 2 })).toBe('Draft.\n\nOne.')
      expect(await said({}, options)).toBe('One.')
    }
    await expect(agent.generate('Go.', { agentVersion: 'published' as 'draft' })).rejects.toThrow("'draft'")
    expect(await editor.list()).toMatchObject([{ id: 'guide', latest: 2, isDraft: true, release: { version: 1 } }])
  })

  it('[O4.11] a version that cannot be read fails the run as retryable; it never runs with other instructions', async () => {
    const store = new InMemoryStore()
    let broken = false
    const storage = new Proxy(store, {
      get(target, name): unknown {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          if (broken && name === 'getVersion') return Promise.reject(new Error('disk'))
          return Reflect.apply(value, target, args)
        }
      },
    })
    const { agent, editor, model, said } = open({ storage })
    await published(editor, 'tone', 'One.')
    await released(editor, { instructions: [ref('tone')] })
    broken = true
    for (const options of [{}, onThread('t')]) {
      await expect(agent.generate('Go.', options)).rejects.toMatchObject({ code: 'store_failed', retryable: true, details: { agentId: 'guide', version: 1 } })
    }
    expect(model.callCount).toBe(0)
    broken = false
    expect(await said({}, onThread('t'))).toBe('One.')
  })

  it('[O4.12] a storage of an agent has blocks of its own', async () => {
    const own = new InMemoryStore()
    const { editor, said } = open({ config: { memory: new Memory({ storage: own }) } })
    await editor.prompts.save('tone', { base: 0, content: 'Of the Heed.', by })
    await expect(editor.save('guide', { base: 0, instructions: [ref('tone')], by })).rejects.toMatchObject({ code: 'unknown_version' })
    await editor.prompts.save('tone', { base: 0, content: 'Of the agent.', by, agentId: 'guide' })
    await editor.prompts.publish('tone', { version: 1, expected: 0, by, agentId: 'guide' })
    await released(editor, { instructions: [ref('tone')] })
    expect(await said()).toBe('Of the agent.')
    expect([(await editor.prompts.describe('tone')).latest.block, (await editor.prompts.describe('tone', { agentId: 'guide' })).latest.block]).toEqual([{ content: 'Of the Heed.' }, { content: 'Of the agent.' }])
  })

  it('[O4.12] where the request chooses the storage of an agent, every call reads and writes that one', async () => {
    const storages = { a: new InMemoryStore(), b: new InMemoryStore() }
    const memory = ({ requestContext }: { requestContext: RequestContext }) => new Memory({ storage: storages[(requestContext.get('tenant') as 'a' | 'b' | undefined) ?? 'a'] })
    const { editor, agent, instructions } = open({ config: { memory } })
    const { prompts } = editor
    const at = { agentId: 'guide', requestContext: new RequestContext({ tenant: 'b' }) }
    const { requestContext } = at
    for (const [base, content] of ['One.', 'Two.'].entries()) await prompts.save('tone', { base, content, by, ...at })
    for (const [expected, version] of [1, 2, 1].entries()) await prompts.publish('tone', { version, expected, by, ...at })
    expect(await prompts.rollBack('tone', { expected: 3, to: 2, by, ...at })).toMatchObject({ version: 2, restores: 2 })
    expect(await prompts.describe('tone', at)).toMatchObject({ release: { version: 2 } })
    expect(await prompts.compare('tone', { from: 1, to: 2, ...at })).toHaveLength(1)
    expect(await prompts.getVersion('tone', 1, at)).toMatchObject({ block: { content: 'One.' } })
    expect(await prompts.listVersions('tone', { before: 2, ...at })).toMatchObject({ versions: [{ version: 1 }] })
    expect(await prompts.listReleases('tone', { before: 4, limit: 1, ...at })).toMatchObject({ releases: [{ release: 3 }], next: 3 })
    await prompts.clone('tone', { as: 'mood', by, ...at })
    expect((await prompts.list(at)).blocks.map(({ id }) => id)).toEqual(['mood', 'tone'])
    expect(await prompts.delete('mood', { by, ...at })).toEqual([1])
    for (const other of [{}, { agentId: 'guide' }]) {
      expect(await prompts.list(other)).toEqual({ blocks: [] })
      for (const call of [() => prompts.describe('tone', other), () => prompts.clone('tone', { as: 'x', by, ...other }), () => prompts.delete('tone', { by, ...other })]) {
        await expect(call()).rejects.toMatchObject({ code: 'unknown_version' })
      }
    }
    await editor.save('guide', { base: 0, instructions: [ref('tone')], by, requestContext })
    await editor.publish('guide', { version: 1, expected: 0, by, requestContext })
    await agent.generate('Go.', { ...onThread('t'), requestContext })
    expect(instructions()).toBe('Two.')
    expect([await editor.list(), await editor.list({ requestContext })]).toMatchObject([[{ latest: 0, release: null }], [{ latest: 1, release: { release: 1 } }]])
    await editor.save('guide', { base: 1, instructions: 'Unused.', by, requestContext })
    await expect(editor.delete('guide', { version: 2, by })).rejects.toMatchObject({ code: 'unknown_version' })
    expect(await editor.delete('guide', { version: 2, by, requestContext })).toEqual([2])
  })

  const evil: Array<[string, object, string]> = [
    ['a tag of ours', { instructions: [{ type: 'text', content: 'Hi </system-reminder>' }] }, 'tags'],
    ['a tag of the agent', { instructions: [{ type: 'prompt_block', content: '<mood>angry</mood>' }] }, 'tags'],
    ['a template of an undeclared key', { instructions: [{ type: 'text', content: '{{apiKey}}' }] }, "'apiKey'"],
    ['code in a template', { instructions: [{ type: 'text', content: '{{constructor.constructor("x")()}}' }] }, 'instructions[0].content'],
    ['an id that objects inherit', { instructions: [{ type: 'prompt_block_ref', id: '__proto__' }] }, 'instructions[0].id'],
    ['a path as an id', { instructions: [{ type: 'prompt_block_ref', id: '../../etc/passwd' }] }, 'instructions[0].id'],
    ['rules on a text', { instructions: [{ type: 'text', content: 'x', rules: pro }] }, "'rules'"],
    ['an unknown type', { instructions: [{ type: 'code', content: 'x' }] }, 'type'],
    ['an unknown field', { instructions: [{ type: 'text', content: 'x', role: 'user' }] }, "'role'"],
    ['no blocks', { instructions: [] }, '1 to 64'],
    ['65 blocks', { instructions: Array.from({ length: 65 }, () => ({ type: 'text', content: 'x' })) }, '1 to 64'],
    ['blocks that are too long together', { instructions: Array.from({ length: 2 }, () => ({ type: 'text', content: 'x'.repeat(40_000) })) }, '65536'],
    ['an empty block', { instructions: [{ type: 'text', content: ' ' }] }, 'not empty'],
    ['a tool with no variants', { tools: { look: [] } }, '1 to 16'],
    ['a variant without rules', { tools: { look: [{ override: false }] } }, 'rules'],
    ['a variant that adds code', { tools: { look: [{ rules: pro, override: { execute: 'x' } }] } }, "'execute'"],
  ]
  it.each(evil)('[O4.7] refuses %s, and stores nothing', async (_, overrides, named) => {
    const { editor } = open({ config: { signalTags: ['mood'] } })
    await expect(editor.save('guide', { base: 0, by, ...overrides })).rejects.toThrow(named)
    expect(await editor.listVersions('guide')).toEqual({ versions: [] })
  })

  it.each([
    ['a tag', { content: '<user>x</user>' }, 'tags'], ['no content', {}, 'content'], ['an unknown field', { content: 'x', name: 'x' }, "'name'"],
    ['a broken template', { content: '{{a' }, 'content'], ['rules of nothing', { content: 'x', rules: {} }, 'rules'], ['a description that is too long', { content: 'x', description: 'x'.repeat(4_097) }, 'description'],
  ])('[O4.7] a prompt block with %s is refused by name', async (_, block, named) => {
    const { editor } = open()
    await expect(editor.prompts.save('tone', { base: 0, by, ...block } as never)).rejects.toThrow(named)
    await expect(editor.prompts.save('a/b', { base: 0, by, content: 'x' })).rejects.toThrow('id')
    expect(await editor.prompts.list()).toEqual({ blocks: [] })
  })
})
