// A server with Studio as a process of its own, to be killed: `node studio-process.ts <file> <port> [hangs]`.
import { Agent, createTool, Heed, silentLogger } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { serve } from 'heed/server'
import { studio } from 'heed/studio'
import { scriptedModel } from 'heed/testing'

const [file = '', port = '0', hangs] = process.argv.slice(2)
const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
const model = scriptedModel(({ prompt }) => {
  const last = JSON.stringify(prompt.at(-1))
  if (last.includes('tool-result')) return 'Paid.'
  if (last.includes('Pay')) return { toolCalls: [{ toolName: 'pay', input: { amount: 12 } }] }
  if (!last.includes('Slowly')) return 'Seen.'
  return hangs === undefined ? 'Once upon a time, again.' : { text: ['Once upon ', 'a time'], hang: { parts: 3 } }
})
const guide = new Agent({ id: 'guide', model, tools: { pay } })
const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })
const server = await serve(heed, { port: Number(port), studio: studio() })
process.stdout.write(`${server.url}\n`)
