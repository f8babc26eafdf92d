import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, Memory, type AnyEmbeddingModel } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { texts } from '../thread/said.ts'
import { allIsEmbedded } from './kept.ts'

const block = (prompt: LanguageModelV4Prompt | undefined) => texts(prompt ?? []).filter((text) => text.startsWith('user: <recalled-messages>')).join('\n')

describe.each(placeKinds())('questions that are asked again, $name', ({ make }) => {
  it.each([
    ['', ['What is the name of the dog that my sister adopted?', "What's the name of the dog my sister adopted?", 'What is the name of the dog that my sister has adopted?']],
    [', also without a question mark', ['what is the name of the dog that my sister adopted', 'whats the name of the dog my sister adopted', 'tell me what the name of the dog is that my sister adopted', 'do you know the name of the dog my sister adopted', 'Which name does the dog have that my sister adopted.']],
    [', also as a phrase that is repeated', ['dog, sister, adopted, name']],
  ])('[K2.16] find the facts as they did the first time, also in other words%s', async (_, questions) => {
    const model = scriptedModel(({ index }) => `I don't know, sorry (${index}).`)
    const agent = new Agent({ id: 'clerk', model, memory: new Memory() })
    openHeed({ agent }, make().store())
    const memory = await agent.getMemory()
    await memory.createThread({ threadId: 'facts', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 'facts', messages: [
      'We spent the week in a cabin by the lake near Oslo.', 'The children swam every day.', 'My sister adopted a beagle called Biscuit in spring.', 'She walks it before work.',
    ].map((content, at) => ({ id: `f-${at}`, role: at % 2 === 0 ? 'user' as const : 'assistant' as const, content })) })
    for (let time = 0; time < 9; time += 1) {
      const asked = [questions[time % questions.length] ?? '', { memory: { thread: `ask-${time}`, resource: 'ada' } }] as const
      const { parts } = await agent.explainPrompt(...asked)
      expect(JSON.stringify(parts.at(-1)?.recalled), `time ${time}`).toContain('"f-2"')
      await agent.generate(...asked)
      expect(parts.at(-1)?.bytes, `time ${time}`).toBe(JSON.stringify(model.calls.at(-1)?.prompt.at(-1)).length)
      const shown = block(model.calls.at(-1)?.prompt)
      expect(shown, `time ${time}`).toContain('a beagle called Biscuit')
      expect(shown.match(/\bdog\b/g)?.length ?? 0, `time ${time}`).toBeLessThanOrEqual(2)
    }
  })

  it.each([
    ['requests', ['find the spare key please', 'look up where the spare key is', 'show me the place of the spare key', 'I need to know where the spare key is', 'spare key location please', 'I was wondering where the spare key is'], 'One moment.'],
    ['questions that got no answer', ['Where is the spare key?', 'Do you know where I put the spare key?', 'Who has the spare key now?', 'Which pot hides the spare key?'], ''],
  ])('[K2.19] %s and answers without content are found after the fact that they are about', async (_, requests, first) => {
    const answers = [
      first, "I don't know where the spare key is.", "Sorry, I couldn't find any information about a spare key.", 'I have no record of a spare key. Could you tell me more?',
      "You haven't told me where the spare key is.", 'I am not sure where the spare key is, sorry.', 'Unfortunately, there is no mention of a spare key in our conversation.',
    ].filter((answer) => answer !== '')
    const model = scriptedModel(({ index }) => answers[index % answers.length] ?? '')
    const agent = new Agent({ id: 'clerk', model, memory: new Memory() })
    openHeed({ agent }, make().store())
    const memory = await agent.getMemory()
    await memory.createThread({ threadId: 'facts', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 'facts', messages: [
      'We spent the week in a cabin by the lake near Oslo.', 'The children swam every day.', 'The spare key is under the blue flowerpot beside the door of the cabin.', 'Nobody will look there.',
    ].map((content, at) => ({ id: `f-${at}`, role: at % 2 === 0 ? 'user' as const : 'assistant' as const, content })) })
    for (let time = 0; time < 14; time += 1) {
      const asked = requests[time % requests.length] ?? ''
      await agent.generate(asked, { memory: { thread: `ask-${time}`, resource: 'ada' } })
      expect(block(model.calls.at(-1)?.prompt), `time ${time}: ${asked}`).toContain('under the blue flowerpot')
      const { hits = [] } = await memory.recall({ threadId: 'facts', vectorSearchString: 'Where is the spare key?', threadConfig: { semanticRecall: { scope: 'resource' } } })
      expect(hits[0]?.messageId, `time ${time}: ${JSON.stringify(hits.slice(0, 2))}`).toBe('f-2')
    }
  })

  it('[K2.19] a question leads to the answer that follows it', async () => {
    const memory = new Memory({ storage: make().store() })
    await memory.createThread({ threadId: 't', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 't', messages: ['Where did you adopt the parrot?', 'At the shelter in Leeds.', 'find the parrot please', 'No idea.'].map((content, at) => ({ id: `m-${at}`, role: at % 2 === 0 ? 'user' as const : 'assistant' as const, content })) })
    const { hits = [] } = await memory.recall({ threadId: 't', vectorSearchString: 'parrot adoption' })
    expect(hits.map(({ messageId }) => messageId).slice(0, 2).toSorted()).toEqual(['m-0', 'm-1'])
  })

  it('[K2.16] equal statements are quoted once', async () => {
    const model = scriptedModel(() => 'ok')
    const agent = new Agent({ id: 'clerk', model, memory: new Memory({ semanticRecall: { messageRange: 0, topK: 3 } }) })
    openHeed({ agent }, make().store())
    const memory = await agent.getMemory()
    for (const at of Array.from({ length: 6 }).keys()) {
      await memory.createThread({ threadId: `t-${at}`, resourceId: 'ada' })
      await memory.saveMessages({ threadId: `t-${at}`, messages: [{ id: `m-${at}`, role: 'user', content: at === 5 ? 'The gate code is not 4711 any more.' : 'The gate code is 4711.' }] })
    }
    await agent.generate('What is the gate code now?', { memory: { thread: 'q', resource: 'ada' } })
    const shown = block(model.calls.at(-1)?.prompt)
    expect(shown.match(/The gate code is 4711/g)).toHaveLength(1)
    expect(shown).toContain('The gate code is not 4711 any more.')
  })

  it('[K1.18] a word that says nothing about the topic is no match', async () => {
    const weather: AnyEmbeddingModel = {
      specificationVersion: 'v4', provider: 'test', modelId: 'weather', maxEmbeddingsPerCall: 16,
      doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/weather|temperature/i.test(text) ? [1, 0.4] : [0.4, 1])) }),
    }
    const memory = new Memory({ storage: make().store(), embedder: weather })
    await memory.createThread({ threadId: 't', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 't', messages: ["What's the capital of France?", 'The weather is nice today.'].map((content, at) => ({ id: `m-${at}`, role: 'user', content })) })
    await allIsEmbedded(memory)
    const { hits = [] } = await memory.recall({ threadId: 't', vectorSearchString: "What's the temperature outside?" })
    expect(hits[0]?.messageId).toBe('m-1')
    expect(hits.map(({ reasons }) => reasons.words)).toEqual([0, 0])
  })

  it('[K1.18] by words alone, a question that shares no topic is no result', async () => {
    const memory = new Memory({ storage: make().store() })
    await memory.createThread({ threadId: 't', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 't', messages: ["What's the capital of France?", 'The temperature is 20 degrees.'].map((content, at) => ({ id: `m-${at}`, role: 'user', content })) })
    const { hits = [] } = await memory.recall({ threadId: 't', vectorSearchString: "What's the temperature outside?" })
    expect(hits.map(({ messageId, reasons }) => [messageId, reasons.words])).toEqual([['m-1', 1], ['m-0', 0]])
  })

  it('[K1.20] a common word that is all that matches is not before what is nearer in meaning', async () => {
    const weather: AnyEmbeddingModel = {
      specificationVersion: 'v4', provider: 'test', modelId: 'weather', maxEmbeddingsPerCall: 16,
      doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/sun|temperature/i.test(text) ? [1, 0.4] : [0.4, 1])) }),
    }
    const memory = new Memory({ storage: make().store(), embedder: weather })
    const contents = [
      'The bakery is closed today.', 'My sister called from Lyon.', 'I paid the rent today.', 'The train was late again.', 'Lunch today was soup.', 'He repairs old clocks.',
      'The sun shines on the terrace.', 'Her team won today.', 'The cat sleeps on the sofa.', 'We moved the meeting.', 'The lamp is broken.', 'The report is due on Friday.',
    ]
    for (const [at, content] of contents.entries()) {
      await memory.createThread({ threadId: `t-${at}`, resourceId: 'ada' })
      await memory.saveMessages({ threadId: `t-${at}`, messages: [{ id: `m-${at}`, role: 'user', content }] })
    }
    await allIsEmbedded(memory)
    const search = async (vectorSearchString: string) => (await memory.recall({ resourceId: 'ada', threadId: 't-0', vectorSearchString, threadConfig: { semanticRecall: { scope: 'resource', topK: 3 } } })).hits?.map(({ messageId }) => messageId)
    expect((await search('Which temperature does the thermometer outside show today?'))?.[0]).toBe('m-6')
    // A word that only one message has still counts in full.
    expect((await search('Which temperature did the bakery report?'))?.[0]).toBe('m-0')
  })
})
