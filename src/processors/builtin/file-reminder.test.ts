import { describe, expect, it } from 'vitest'
import { called, said, stepArgs } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { Heed } from '../../heed/heed.ts'
import { MessageList } from '../../message/list/list.ts'
import type { Message, MessagePart } from '../../message/message.ts'
import { createTool } from '../../run/tools/tool.ts'
import { normalizeSignal } from '../../signals/normalize.ts'
import { signalToMessage } from '../../signals/conversions.ts'
import { InMemoryStore } from '../../store/sqlite/in-memory.ts'
import { scriptedModel } from '../../testing/index.ts'
import { fileReminder, type FileReminderOptions } from './file-reminder.ts'

const rules: Record<string, string> = { 'ui/AGENTS.md': 'Use <b> sparingly.', 'api/AGENTS.md': 'Answer JSON.' }
const loads = () => {
  const asked: string[] = []
  return { asked, load: async (path: string) => (asked.push(path), rules[path]) }
}
const reads = (...paths: string[]) => said('a1', 'assistant', ...paths.map((path, index) => called('read', `c${index}`, { path })))
const reminded = (path: string, type = 'dynamic-agents-md'): Message =>
  signalToMessage(normalizeSignal({ type: 'reactive', contents: 'x', attributes: { type, path }, metadata: { path } }, { id: `s-${path}`, now: 0 }))
const step = async (options: FileReminderOptions, ...messages: Message[]) => {
  const args = stepArgs(new MessageList().add(messages, 'memory'))
  await fileReminder({ load: options.load, ...(options.files ? { files: options.files } : {}) }).processInputStep?.(args)
  return args.sent.map(({ metadata }) => metadata?.path)
}

describe('fileReminder', () => {
  const failed: MessagePart = { type: 'tool-invocation', toolInvocation: { toolCallId: 'c', toolName: 'read', args: { path: 'ui/AGENTS.md' }, state: 'output-error', errorText: 'no' } }

  it.each<[string, Message[], string[]]>([
    ['for a path with instructions', [reads('ui/AGENTS.md')], ['ui/AGENTS.md']],
    ['for each of several', [reads('ui/AGENTS.md', 'api/AGENTS.md')], ['ui/AGENTS.md', 'api/AGENTS.md']],
    ['once for a path that was read twice', [reads('ui/AGENTS.md', 'ui/AGENTS.md')], ['ui/AGENTS.md']],
    ['for none without instructions', [reads('README.md')], []],
    ['not when the reminder is there', [reads('ui/AGENTS.md', 'api/AGENTS.md'), reminded('ui/AGENTS.md')], ['api/AGENTS.md']],
    ['though another reminder names the path', [reads('ui/AGENTS.md'), reminded('ui/AGENTS.md', 'other')], ['ui/AGENTS.md']],
    ['not after a call that failed', [said('a1', 'assistant', failed)], []],
    ['not for words about it', [said('u1', 'user', 'read ui/AGENTS.md')], []],
  ])('reminds %s', async (_, messages, paths) => {
    expect(await step(loads(), ...messages)).toEqual(paths)
  })

  it('finds paths with `files`', async () => {
    const { asked, load } = loads()
    const files: FileReminderOptions['files'] = ({ toolName, args }) => (toolName === 'open' ? [`${(args as { folder: string }).folder}/AGENTS.md`] : undefined)
    const messages = said('a1', 'assistant', called('open', 'c1', { folder: 'ui' }), called('read', 'c2', { path: 'api/AGENTS.md' }))
    expect(await step({ load, files }, messages)).toEqual(['ui/AGENTS.md'])
    expect(asked).toEqual(['ui/AGENTS.md'])
  })

  it('adds the instructions once, at the end of the prompt, and loads them once', async () => {
    const { asked, load } = loads()
    const read = createTool({ id: 'read', execute: async () => 'some text' })
    const model = scriptedModel([
      { toolCalls: [{ toolName: 'read', input: { path: 'README.md' } }, { toolName: 'read', input: { file_path: 'ui/AGENTS.md' } }] },
      { toolCalls: [{ toolName: 'read', input: { path: 'ui/AGENTS.md' } }] },
      'Done.',
    ])
    await new Agent({ id: 'a', model, tools: { read }, inputProcessors: [fileReminder({ load })] }).generate('Go.')
    const tag = '<system-reminder type="dynamic-agents-md" path="ui/AGENTS.md">Use &lt;b&gt; sparingly.</system-reminder>'
    expect(model.calls[1]?.prompt.at(-1)).toEqual({ role: 'user', content: [{ type: 'text', text: tag }] })
    expect(model.calls.map(({ prompt }) => JSON.stringify(prompt).split('<system-reminder').length - 1)).toEqual([0, 1, 1])
    expect(asked).toEqual(['README.md', 'ui/AGENTS.md'])
  })

  it('takes a type and an id', async () => {
    const args = stepArgs(new MessageList().add(reads('ui/AGENTS.md'), 'memory'))
    const processor = fileReminder({ load: loads().load, tagType: 'house-rules', id: 'rules' })
    await processor.processInputStep?.(args)
    expect([processor.id, args.sent[0]]).toEqual(['rules', expect.objectContaining({ type: 'reactive', attributes: { type: 'house-rules', path: 'ui/AGENTS.md' } })])
  })

  it('[G2.33] leaves out instructions that can not be loaded, logs that once in a run, and does not fail the run', async () => {
    const logged: string[] = []
    const log = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${String(fields?.path)} ${String(fields?.error)}`)
    const read = createTool({ id: 'read', execute: async () => 'some text' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'read', input: { path: 'gone/AGENTS.md' } }, { toolName: 'read', input: { path: 'ui/AGENTS.md' } }] }, { toolCalls: [{ toolName: 'read', input: { path: 'gone/AGENTS.md' } }] }, 'Done.', 'Here.'])
    const load = async (path: string) => {
      if (path in rules) return rules[path]
      throw new Error('ENOENT')
    }
    const agent = new Agent({ id: 'a', model, tools: { read }, inputProcessors: [fileReminder({ load })] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: { debug: log, info: log, warn: log, error: log } })
    const memory = { thread: 't', resource: 'u' }
    expect((await agent.generate('Go.', { memory })).text).toBe('Done.')
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('Use &lt;b&gt; sparingly.')
    expect(logged).toEqual(['file-reminder could not load the instructions of a file gone/AGENTS.md ENOENT'])
    expect((await agent.generate('Still there?', { memory })).text).toBe('Here.')
    await heed.close()
  })

  it.each<[string, object, RegExp]>([
    ['files that are a number', { files: () => 5 }, /files returned a number\. Return a path/],
    ['files that are an object', { files: () => ({ path: 'x' }) }, /files returned an object with path\. Return a path/],
    ['a list with something else in it', { files: () => ['x', 7] }, /files returned a number in a list\. Return a path/],
    ['instructions that are no text', { load: () => 5 }, /load returned a number for 'p'\. Return the instructions as a text/],
  ])('[G2.33] names %s in the error', async (_, options, message) => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'read', input: { path: 'p' } }] }, 'Done.'])
    const read = createTool({ id: 'read', execute: async () => 'x' })
    const reminder = fileReminder({ load: () => 'rules', ...options } as FileReminderOptions)
    const asked = new Agent({ id: 'a', model, tools: { read }, inputProcessors: [reminder] }).generate('Go.')
    await expect(asked).rejects.toMatchObject({ code: 'processor_failed', message: expect.stringMatching(message) as string })
  })
})
