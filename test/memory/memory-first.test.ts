import { describe, expect, it } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { AttachmentUploader } from '../../src/processors/index.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection } from '../agent/asking.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const ask = (thread: string) => ({ memory: { thread, resource: 'ada' } })

describe.each(placeKinds())('input processors, $name', ({ make }) => {
  it('[G3.3] see working memory and what was recalled, in processInput and in processInputStep', async () => {
    const seen: Record<string, string[]> = {}
    const look: Processor = {
      id: 'look',
      processInput: ({ messageList }) => void (seen.input = texts(messageList.get.all.prompt())),
      processInputStep: ({ messageList }) => void (seen.step = messageList.get.context.db().map(({ role, content }) => `${role}: ${content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}`)),
    }
    const model = scriptedModel(() => 'ok')
    const agent = new Agent({ id: 'a', instructions: 'Be brief.', model, memory: new Memory({ workingMemory: { enabled: true } }), inputProcessors: [look] })
    openHeed({ agent }, make().store())
    const memory = await agent.getMemory()
    await agent.generate('The spare key is under the flowerpot.', ask('one'))
    await memory.updateWorkingMemory({ resourceId: 'ada', workingMemory: '# Name: Sam' })
    await agent.generate('Where is the spare key?', ask('two'))
    for (const hook of ['input', 'step'] as const) {
      expect(seen[hook]?.filter((text) => text.includes('<working-memory>')), hook).toHaveLength(1)
      expect(seen[hook]?.join('\n'), hook).toContain('The spare key is under the flowerpot.')
    }
    expect(texts(model.calls.at(-1)?.prompt ?? []).filter((text) => text.includes('<recalled-messages>'))).toHaveLength(1)
  })

  it('[G3.3] find what memory added in get.context, and in the prompt of all messages alone', async () => {
    const seen: Array<Record<string, boolean>> = []
    const look = (list: Parameters<NonNullable<Processor['processInput']>>[0]['messageList']) => {
      const { all, context, remembered, input, response } = list.get
      const hasBlock = (prompt: Parameters<typeof texts>[0]) => texts(prompt).some((text) => /<working-memory>|<recalled-messages>/.test(text))
      seen.push(Object.fromEntries(Object.entries({ all, context, remembered, input, response }).map(([name, view]) => [name, hasBlock(view.prompt())])))
    }
    const processor: Processor = {
      id: 'look',
      processInput: ({ messageList, source }) => (source === 'input' ? look(messageList) : undefined),
      processInputStep: ({ messageList }) => look(messageList),
      processOutputStep: ({ messageList }) => look(messageList),
    }
    const memory = new Memory({ workingMemory: { enabled: true } })
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok'), memory, inputProcessors: [processor], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    await agent.generate('The spare key is under the flowerpot.', ask('one'))
    await (await agent.getMemory()).updateWorkingMemory({ resourceId: 'ada', workingMemory: '# Name: Sam' })
    seen.length = 0
    for (const question of ['Where is the spare key?', 'And the flowerpot?']) await agent.generate(question, ask('two'))
    expect(seen).toEqual(seen.map(() => ({ all: true, context: true, remembered: false, input: false, response: false })))
    expect(seen.length).toBeGreaterThanOrEqual(6)
  })

  it('[G3.3] that reject leave nothing of what memory added', async () => {
    const guard: Processor = { id: 'guard', processInput: ({ messages, abort }) => (JSON.stringify(messages).includes('Where') ? abort('no') : undefined) }
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok'), memory: new Memory(), inputProcessors: [guard] })
    openHeed({ agent }, make().store())
    await agent.generate('The spare key is under the flowerpot.', ask('one'))
    await agent.generate('Hello.', ask('two'))
    const rows = async () => (await agent.threads().store.listRows({ threadId: 'two' }, { limit: 50, context: true })).rows
    const before = await rows()
    expect((await agent.generate('Where is the spare key?', ask('two'))).tripwire).toMatchObject({ reason: 'no' })
    expect(await rows()).toEqual(before)
  })
})

describe.each(placeKinds())('a file that could not be uploaded, $name', ({ make }) => {
  it('[G3.6] leaves a note in history in place of its bytes, and the thread goes on', async () => {
    let works = false
    const uploader = new AttachmentUploader({
      upload: async ({ name }) => {
        if (!works && name !== 'a.png') throw new Error('no space')
        return 'https://files.example/x'
      },
      concurrency: 1,
    })
    const model = scriptedModel(() => 'ok')
    const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false }), inputProcessors: [uploader] })
    openHeed({ agent }, make().store())
    const file = (filename: string) => ({ type: 'file' as const, data: 'QUFFQ0FB', mediaType: 'image/png', filename })
    const sent = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'See.' }, file('a.png'), file('b.png'), file('c.png')] }]
    expect(await rejection(agent.generate(sent, ask('t')))).toMatchObject({ code: 'processor_failed', message: expect.stringContaining('The file "b.png" could not be uploaded: no space') as string })
    const receipt = agent.sendMessage([{ type: 'text', text: 'And this.' }, file('d.png')], { threadId: 't', resourceId: 'ada' })
    await receipt.outcome
    await expect.poll(() => agent.activeRun({ threadId: 't' })).toBeNull()
    const stored = JSON.stringify(await agent.threads().store.listRows({ threadId: 't' }, { limit: 50 }))
    expect(stored).not.toContain('QUFFQ0FB')
    expect(stored).toContain('https://files.example/x')
    for (const name of ['b.png', 'c.png', 'd.png']) expect(stored).toContain(`[The file \\\\\\"${name}\\\\\\" could not be uploaded.]`.replaceAll('\\\\\\"', '\\"'))
    works = true
    await agent.generate('Go on.', ask('t'))
    expect(texts(model.calls.at(-1)?.prompt ?? []).at(-1)).toBe('user: Go on.')
  })
})
