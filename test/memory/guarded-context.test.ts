import { describe, expect, it } from 'vitest'
import { Agent, Memory, RequestContext, type Message, type Processor } from '../../src/index.ts'
import { RegexFilter } from '../../src/processors/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'

const word = 'xyzzy'
const refuse: Processor = { id: 'no-magic', processInput: ({ messages, abort }) => (JSON.stringify(messages).includes(word) ? abort('no magic') : undefined) }
const redact: Processor = {
  id: 'redact-magic',
  processInput: ({ messages }) => JSON.parse(JSON.stringify(messages).replaceAll(word, '[gone]'), (key, value: unknown) => (key === 'createdAt' ? new Date(value as string) : value)) as Message[],
}
const guards: Array<[string, Processor, boolean]> = [
  ['refuses', refuse, false], ['redacts', redact, true],
  ['refuses, built in', new RegexFilter({ rules: [{ name: 'magic', pattern: /xyzzy/ }] }), false],
  ['redacts, built in', new RegexFilter({ rules: [{ name: 'magic', pattern: /xyzzy/ }], strategy: 'redact' }), true],
]
const ask = (thread: string) => ({ memory: { thread, resource: 'ada' } })

describe.each(placeKinds())('what memory adds to a prompt, $name', ({ make }) => {
  function world(guard: Processor, script: Script = () => 'Fine.') {
    const model = scriptedModel(script)
    const logged: string[] = []
    const warn = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${JSON.stringify(fields)}`)
    const memory = () => new Memory({ options: { workingMemory: { enabled: true, scope: 'resource' }, semanticRecall: { scope: 'resource', topK: 3, messageRange: 0 } } })
    const guarded = new Agent({ id: 'guarded', model, memory: memory(), inputProcessors: [guard] })
    const open = new Agent({ id: 'open', model: scriptedModel(() => `The ${word} is under the flowerpot.`), memory: memory() })
    openHeed({ guarded, open }, make().store(), { logger: { debug: () => {}, info: () => {}, warn, error: warn } })
    return { guarded, open, model, logged, read: () => JSON.stringify(model.calls.map(({ prompt }) => prompt)) }
  }

  it.each(guards)('[G3.8] is checked before a model reads it: recalled messages of another agent, where a guardrail %s', async (_, guard, keeps) => {
    const { guarded, open, read, logged } = world(guard)
    await open.generate('Where is the spare key, the flowerpot?', ask('elsewhere'))
    const { text, tripwire } = await guarded.generate('Where is the spare key, the flowerpot?', ask('here'))
    expect([text, tripwire]).toEqual(['Fine.', undefined])
    expect(read()).not.toContain(word)
    expect(read().includes('<recalled-messages>')).toBe(keeps)
    expect(logged.some((line) => line.includes(guard.id))).toBe(!keeps)
  })

  it.each(guards)('[G3.8] is checked before a model reads it: working memory that a program wrote, where a guardrail %s', async (_, guard, keeps) => {
    const { guarded, read, model } = world(guard)
    await (await guarded.getMemory()).updateWorkingMemory({ resourceId: 'ada', workingMemory: `Likes ${word}.` })
    for (const thread of ['one', 'one', 'two']) expect((await guarded.generate('Hi.', ask(thread))).text).toBe('Fine.')
    expect(read()).not.toContain(word)
    expect(JSON.stringify(model.calls.at(-1)?.prompt).match(/<working-memory>\\n/g) ?? []).toHaveLength(keeps ? 1 : 0)
  })

  it.each(guards)('[G3.8] is checked before it is stored: working memory that a model wrote, where a guardrail %s', async (_, guard, keeps) => {
    const { guarded, model } = world(guard, ({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Fine.' : { toolCalls: [{ toolName: 'updateWorkingMemory', input: { memory: `Likes ${word}.` } }] }))
    expect((await guarded.generate('Hi.', ask('one'))).text).toBe('Fine.')
    const stored = await (await guarded.getMemory()).getWorkingMemory({ resourceId: 'ada' })
    if (keeps) expect(stored).toMatch(/^Likes \[.*\]\.$/)
    else expect(stored).toBeNull()
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain(keeps ? 'success' : `Processor '${guard.id}' rejected the text`)
  })

  it('[G3.8] has another source than input, and what a processor adds beside it is ignored', async () => {
    const seen: string[] = []
    const adding: Processor = {
      id: 'adding',
      processInput: ({ messages, source }) => {
        seen.push(`${source} ${messages.map(({ role }) => role).join()}`)
        return source === 'input' ? undefined : [...messages, { ...(messages[0] as Message), id: 'added' }]
      },
    }
    const { guarded, model } = world(adding)
    await (await guarded.getMemory()).updateWorkingMemory({ resourceId: 'ada', workingMemory: 'Likes tea.' })
    await guarded.generate('Hi.', ask('one'))
    expect(seen).toEqual(['context user', 'input user'])
    expect(JSON.stringify(model.calls[0]?.prompt).match(/Likes tea/g)).toHaveLength(1)
  })

  it('[G3.8] checkInput() of an agent gives a program the same check', async () => {
    const requestContext = new RequestContext({ tenant: 'a' })
    const { guarded, open } = world({ ...redact, processInput: (args) => (expect([args.source, args.threadId, args.resourceId, args.requestContext.all]).toEqual(['stored', 't', 'ada', { tenant: 'a' }]), redact.processInput?.(args)) as never })
    expect(await guarded.checkInput(['a', `b ${word}`], { threadId: 't', resourceId: 'ada', requestContext })).toEqual(['a', 'b [gone]'])
    expect(await open.checkInput([word])).toEqual([word])
    await expect(world(refuse).guarded.checkInput([word])).rejects.toMatchObject({ code: 'tripwire', details: { processorId: 'no-magic', reason: 'no magic' } })
    await expect(world({ id: 'drops', processInput: () => [] }).guarded.checkInput(['a'])).rejects.toMatchObject({ code: 'processor_failed' })
    await expect(open.checkInput('a' as never)).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(open.checkInput(['a'], { thread: 'x' } as never)).rejects.toMatchObject({ code: 'unsupported_option' })
  })
})
