// Processors: as soon as the agent reads a file of a folder that has rules, remind it of them, once a thread.
import { Agent, createTool, type Message, type ModelConfig, type Processor } from 'heed'
import { scriptedModel } from 'heed/testing'
import { dirname } from 'node:path/posix'
import { z } from 'zod'

const files: Record<string, string> = {
  'ui/AGENTS.md': 'Every label goes through t().',
  'ui/button.ts': "export const label = 'Send'",
  'ui/field.ts': "export const hint = 'Your name'",
}

const readFile = createTool({
  id: 'read_file',
  description: 'Reads a file of the project.',
  inputSchema: z.object({ path: z.string() }),
  execute: ({ path }) => files[path] ?? 'No such file.',
})

const folderRules: Processor = {
  id: 'folder-rules',
  async processInputStep({ messages, sendSignal }) {
    const folders = new Set(pathsRead(messages).map((path) => dirname(path)))
    for (const folder of folders) {
      const path = `${folder}/AGENTS.md`
      const id = `rules:${path}`
      // A signal is a message of the thread, under its own id.
      if (files[path] === undefined || messages.some((message) => message.id === id)) continue
      await sendSignal({ id, type: 'reactive', contents: files[path], attributes: { type: 'folder-rules', path } })
    }
  },
}

function pathsRead(messages: Message[]): string[] {
  const calls = messages.flatMap(({ content }) => content.parts.filter((part) => part.type === 'tool-invocation'))
  const reads = calls.filter(({ toolInvocation }) => toolInvocation.toolName === 'read_file' && toolInvocation.state === 'result')
  return reads.map(({ toolInvocation }) => (toolInvocation.args as { path: string }).path)
}

const script = () =>
  scriptedModel([
    { toolCalls: [{ toolName: 'read_file', input: { path: 'ui/button.ts' } }] },
    { toolCalls: [{ toolName: 'read_file', input: { path: 'ui/field.ts' } }] },
    "Both need t(): label = t('Send'), hint = t('Your name').",
  ])

export async function main(model: ModelConfig = script()) {
  const tools = { read_file: readFile }
  const coder = new Agent({ id: 'coder', instructions: 'Review code.', model, tools, inputProcessors: [folderRules] })
  const stream = await coder.stream('Review ui/button.ts and ui/field.ts.')

  const reminders: string[] = []
  for await (const chunk of stream.fullStream) {
    if (chunk.type === 'data-signal') reminders.push((chunk.data as { contents: string }).contents)
  }
  return { text: await stream.text, reminders }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
