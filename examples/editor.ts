// Editor: a draft of an agent's instructions is tried, published to everyone, and rolled back.
import { Agent, createTool, Heed, InMemoryStore, isHeedError, type ModelConfig } from 'heed'
import { HeedEditor } from 'heed/editor'
import { scriptedModel } from 'heed/testing'

const refund = createTool({ id: 'refund', description: 'Refunds an order.', execute: async () => 'refunded' })

export async function main(_given?: ModelConfig, print: (text: string) => void = console.log) {
  const model = scriptedModel(() => 'Yes.')
  const support = new Agent({ id: 'support', instructions: 'Answer questions about orders.', model, tools: { refund } })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { support }, storage: new InMemoryStore(), editor })

  /** What the model reads: the instructions, and whether it may refund. */
  async function said(options: { agentVersion?: number } = {}): Promise<string> {
    await support.generate('Hello?', options)
    const call = model.calls.at(-1)
    const tools = call?.tools?.length ? '' : ' (without refund)'
    return `${String(call?.prompt[0]?.content)}${tools}`
  }
  print(`from code: ${await said()}`)

  const draft = { base: 0, instructions: 'Answer in one sentence.', tools: { refund: false as const } }
  const { version } = await editor.save('support', { ...draft, by: 'ann', why: 'Answers were long.' })
  // Bob has not seen Ann's draft: nothing of hers is overwritten.
  await editor.save('support', { base: 0, instructions: 'Be kind.', by: 'bob' }).catch((error: unknown) => {
    if (!isHeedError(error)) throw error
    print(`bob: ${error.code}, ${String(error.details?.by)} was first`)
  })
  print(`the draft alone: ${await said({ agentVersion: version })}`)
  print(`everyone else: ${await said()}`)

  const { release } = await editor.publish('support', { version, expected: 0, by: 'ann' })
  print(`published, release ${release}: ${await said()}`)
  for (const { field, from, to } of await editor.compare('support', { from: 0, to: version })) print(`${field}: ${JSON.stringify(from)} -> ${JSON.stringify(to)}`)

  const back = await editor.rollBack('support', { expected: release, by: 'bob', why: 'Customers want to know more.' })
  print(`rolled back, release ${back.release}: ${await said()}`)
  await heed.close()
  return back
}

if (import.meta.main) await main()
