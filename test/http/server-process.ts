import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { LibSQLStore } from '../../src/store/libsql/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

/** A server as a process of its own, to be killed: `node server-process.ts <file> <port> [origin]`. */
const [file = '', port = '0', origin] = process.argv.slice(2)
const agent = new Agent({ id: 'guide', model: scriptedModel(({ index }) => `Answer number ${index} of many, in a few words.`, { record: false }) })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })
const server = await serve(heed, { port: Number(port), ...(origin === undefined ? {} : { cors: { origin } }) })
process.stdout.write(`${server.url}\n`)
