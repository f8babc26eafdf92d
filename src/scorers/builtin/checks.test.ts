import { describe, expect, it } from 'vitest'
import type { Message, MessagePart } from '../../message/message.ts'
import { scriptedModel } from '../../testing/scripted-model.ts'
import { filterRun } from '../filter-run.ts'
import { createScorer, type Scorer } from '../scorer.ts'
import { trajectoryOf } from '../messages.ts'
import { checks } from './checks.ts'
import { createClassifierScorer } from './judged.ts'

function message(id: string, ...parts: MessagePart[]): Message {
  return { id, role: 'assistant', createdAt: new Date(0), content: { format: 2, parts } }
}
function said(text: string): MessagePart {
  return { type: 'text', text }
}
function called(toolName: string, args: object = {}, state: 'result' | 'output-error' = 'result'): MessagePart {
  return { type: 'tool-invocation', toolInvocation: { toolCallId: toolName, toolName, args: args as never, state, ...(state === 'result' ? { result: 'ok' } : { errorText: 'no' }) } }
}

const run = async (scorer: Scorer, output: unknown) => (await scorer.run({ input: 'How?', output })).score

describe('checks', () => {
  it('[J2.4] of texts are 1 where they hold and else 0, for texts and for answers of agents', async () => {
    const cases: Array<[Scorer, hold: string, fail: string]> = [
      [checks.includes('train'), 'Take the train.', 'Take the Train.'], [checks.includes('train', { ignoreCase: true }), 'Take the Train.', 'Take the bus.'],
      [checks.excludes('bus'), 'Take the train.', 'Take the bus.'], [checks.excludes('BUS', { ignoreCase: true }), 'Take the train.', 'Take the bus.'],
      [checks.equals('Yes.'), ' Yes.\n', 'yes.'], [checks.matches(/^\d+ €$/g), '12 €', 'twelve'], [checks.similarity('Take the train.'), 'take the train', 'Walk to the castle.'],
      [checks.similarity('Take the train.', { min: 0 }), 'x', ''],
    ]
    for (const [scorer, hold, fail] of cases) {
      expect([scorer.id, await run(scorer, hold), await run(scorer, [message('a', said(hold))])]).toEqual([scorer.id, 1, 1])
      if (fail !== '') expect([scorer.id, await run(scorer, fail), await run(scorer, [message('a', said(fail))])]).toEqual([scorer.id, 0, 0])
      // The same pattern again: no state stays.
      expect(await run(scorer, hold)).toBe(1)
    }
    expect((await checks.includes('x').run({ input: '', output: 'Long.' })).reason).toBe('The answer: Long.')
    expect(checks.includes('a').id).not.toBe(checks.includes('b').id)
  })

  it('[J2.4] of tool calls look at names, arguments, order and failures; what is no answer of an agent has no score', async () => {
    const output = [message('a', called('look', { place: { city: 'Sintra' }, days: [1, 2] })), message('b', said('So'), called('book', {}, 'output-error'), called('look', {}))]
    const hold = [
      checks.calledTool('look'), checks.calledTool('look', { times: 2 }), checks.calledTool('look', { args: { place: { city: 'Sintra' } } }), checks.calledTool('look', { times: 1, args: { days: [1, 2] } }),
      checks.didNotCall('pay'), checks.toolOrder(['look', 'book', 'look']), checks.toolOrder(['book', 'look']), checks.maxToolCalls(3),
    ]
    for (const scorer of hold) expect([scorer.id, await run(scorer, output)]).toEqual([scorer.id, 1])
    const fail = [
      checks.calledTool('pay'), checks.calledTool('look', { times: 1 }), checks.calledTool('look', { args: { place: { city: 'Porto' } } }), checks.calledTool('look', { args: { days: [1] } }),
      checks.didNotCall('book'), checks.usedNoTools(), checks.toolOrder(['book', 'book']), checks.maxToolCalls(2), checks.noToolErrors(),
    ]
    for (const scorer of fail) expect([scorer.id, await run(scorer, output)]).toEqual([scorer.id, 0])
    expect(await run(checks.usedNoTools(), [message('a', said('Hi'))])).toBe(1)
    expect(await run(checks.noToolErrors(), [message('a', called('look'))])).toBe(1)
    expect((await checks.noToolErrors().run({ input: '', output })).reason).toBe('Called look, book (failed), look.')
    for (const scorer of [checks.calledTool('x'), checks.usedNoTools()]) expect(await scorer.run({ input: '', output: 'text' })).toMatchObject({ notScorable: { step: 'analyze' } })
  })

  it('[J1.6] that cannot work are rejected by name', () => {
    expect(() => checks.includes('')).toThrow('checks.includes()')
    expect(() => checks.includes('x', { ignorecase: true } as never)).toThrow("'ignorecase'")
    expect(() => checks.matches('x' as never)).toThrow('regular expression')
    expect(() => checks.similarity('x', { min: 2 })).toThrow('min')
    expect(() => checks.calledTool('')).toThrow('checks.calledTool()')
    expect(() => checks.calledTool('x', { times: 0 })).toThrow('times')
    expect(() => checks.toolOrder([])).toThrow('checks.toolOrder()')
    expect(() => checks.maxToolCalls(-1)).toThrow('checks.maxToolCalls()')
  })
})

it('[J2.5] a classifier has the score of the answer that its judge chooses, and none for one without a score', async () => {
  const model = scriptedModel(['{"why":"It is kind.","choice":"good"}', '{"why":"It asks back.","choice":"unclear"}', '{"why":"x","choice":"other"}', '{"why":"x","choice":"other"}'])
  const tone = createClassifierScorer({ id: 'tone', description: 'The tone.', question: 'How kind is it?', choices: { good: 1, poor: 0, unclear: null }, better: 'lower', version: '2', model })
  expect(tone).toMatchObject({ id: 'tone', version: '2', better: 'lower' })
  expect(await tone.run({ input: 'Hi <there>', output: 'Hello </answer>' })).toMatchObject({ score: 1, reason: 'good: It is kind.' })
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain('Hello &lt;/answer&gt;')
  expect(await tone.run({ input: 'Hi', output: 'What?' })).toMatchObject({ notScorable: { reason: 'unclear: It asks back.' } })
  // What it answered is in the error.
  await expect(tone.run({ input: 'Hi', output: 'What?' })).rejects.toThrow(/choice.*It answered: \{"why":"x","choice":"other"\}/s)
  expect(await tone.run({ input: 'Hi', output: ' ' })).toMatchObject({ notScorable: { step: 'preprocess' } })
  expect(model.callCount).toBe(4)
  const make = (choices: unknown) => () => createClassifierScorer({ id: 'x', description: 'd', question: 'q', choices: choices as never, model })
  expect(make({ one: 1 })).toThrow('choices')
  expect(make({ one: 1, two: 'x' })).toThrow('choices')
})

const user = (id: string): Message => ({ id, role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: id }] } })

it('[J1.7] prepareRun makes what the stages get, and filterRun leaves out what a scorer does not need', async () => {
  const input = { inputMessages: [user('q')], rememberedMessages: [user('a'), user('b'), user('c')], systemMessages: ['Be brief.'] }
  const output = [message('a', called('look'), called('book')), message('b', said('By train.'))]
  const given = { input, output, requestContext: { plan: 'pro' }, groundTruth: 'x', runId: 'r' }
  const seen = async (options: Parameters<typeof filterRun>[0]) => {
    let found: typeof given | undefined
    await createScorer({ id: 's', description: 'd', type: 'agent', prepareRun: filterRun(options) }).generateScore(({ run: prepared }) => {
      found = prepared as typeof given
      return 1
    }).run(given)
    return found as typeof given
  }
  expect((await seen({ partTypes: ['text'] })).output).toEqual([output[1]])
  expect(trajectoryOf((await seen({ toolNames: ['book'] })).output).map(({ name }) => name)).toEqual(['book'])
  expect((await seen({ maxRememberedMessages: 2, maxOutputMessages: 0 }))).toMatchObject({ input: { rememberedMessages: [{ id: 'b' }, { id: 'c' }] }, output: [], runId: 'r', groundTruth: 'x' })
  expect(await seen({ dropSystemMessages: true, dropRequestContext: true })).toEqual({ input: { ...input, systemMessages: [] }, output, groundTruth: 'x', runId: 'r' })
  expect(filterRun({ partTypes: ['text'] })({ input: 'q', output: 'a' })).toEqual({ input: 'q', output: 'a' })
  expect(() => filterRun({ maxOutputMessages: -1 })).toThrow('maxOutputMessages')
  expect(() => filterRun({ toolNames: 'x' as never })).toThrow('toolNames')
  const upper = createScorer({ id: 's', description: 'd', prepareRun: (prepared) => ({ ...prepared, output: String(prepared.output).toUpperCase() }) }).generateScore(({ run: prepared }) => (prepared.output === 'A' ? 1 : 0))
  expect(await upper.run({ input: '', output: 'a' })).toMatchObject({ score: 1 })
  const broken = createScorer({ id: 's', description: 'd', prepareRun: () => undefined as never }).generateScore(() => 1)
  await expect(broken.run({ input: '', output: 'a' })).rejects.toMatchObject({ code: 'scorer_failed', message: expect.stringContaining('prepareRun') as string })
  expect(() => createScorer({ id: 's', description: 'd', prepareRun: {} as never })).toThrow('prepareRun')
})

it('[J1.4] a judge may have processors, of what it reads and of what it answers', async () => {
  const model = scriptedModel(['{"score":1}', '{"score":1}'])
  const judge = {
    model, maxProcessorRetries: 1,
    inputProcessors: [{ id: 'hide', processInput: ({ messages }: { messages: Message[] }) => messages.map((one) => ({ ...one, content: { ...one.content, parts: [said('hidden')] } })) }],
  }
  const stage = { description: 'd', createPrompt: () => 'The number is 4711.' }
  expect((await createScorer({ id: 's', description: 'd', judge }).generateScore(stage).run({ input: '', output: '' })).score).toBe(1)
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain('hidden')
  expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('4711')
  const refuses = { model, outputProcessors: [{ id: 'never', processOutputResult: ({ abort }: { abort: (reason: string) => never }) => abort('not allowed') }] }
  await expect(createScorer({ id: 's', description: 'd', judge: refuses as never }).generateScore(stage).run({ input: '', output: '' })).rejects.toThrow('not allowed')
  expect(() => createScorer({ id: 's', description: 'd', judge: { model, inputProcessors: {} as never } })).toThrow('inputProcessors')
  expect(() => createScorer({ id: 's', description: 'd', judge: { model, maxProcessorRetries: -1 } })).toThrow('maxProcessorRetries')
  expect(() => createScorer({ id: 's', description: 'd', judge: { model, errorProcessors: [] } as never })).toThrow("'errorProcessors'")
})
