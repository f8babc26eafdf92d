// Subagents: agents that another one calls as tools. What they say is nested in its stream, and each has a thread below its own.
import { Agent, Heed, InMemoryStore, type Chunk, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () =>
  scriptedModel([
    { toolCalls: [{ toolName: 'agent-researcher', input: { prompt: 'When was the Eiffel Tower built?' } }] },
    'From 1887 to 1889.',
    'The Eiffel Tower was built from 1887 to 1889.',
  ])

export async function main(model: ModelConfig = script()) {
  const researcher = new Agent({ id: 'researcher', description: 'Finds facts.', instructions: 'Give the bare fact.', model })
  const editor = new Agent({ id: 'editor', instructions: 'Ask the researcher, then write.', model, agents: { researcher } })
  const heed = new Heed({ agents: { editor, researcher }, storage: new InMemoryStore() })

  const stream = await editor.stream('Write about the Eiffel Tower.', { memory: { thread: 'article-1', resource: 'user-1' } })
  let aside = ''
  for await (const chunk of stream.fullStream) {
    if (chunk.type !== 'tool-output') continue
    const nested = chunk.payload.output as Chunk
    if (nested.type === 'text-delta') aside += nested.payload.text
  }
  const { text, toolCalls } = await stream.result
  const memory = await researcher.getMemory()
  const { messages } = await memory.recall({ threadId: `child:article-1/${toolCalls[0]?.toolCallId}`, resourceId: 'user-1' })
  await heed.close()
  return { text, aside, remembered: messages.length }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
