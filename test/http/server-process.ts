import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fastClock } from '../crash/fast-clock.ts'

/**
 * A server as a process of its own, to be killed: `node server-process.ts <file> <port> [origin]`. With `HEED_TEST_HANGS`, what it is asked to say slowly
 * it begins with these words, and never finishes.
 */
const [file = '', port = '0', origin] = process.argv.slice(2)
const clock = fastClock(5, Number(process.env.HEED_TEST_CLOCK_START))
const hangs = process.env.HEED_TEST_HANGS ?? ''
const agent = new Agent({ id: 'guide', model: scriptedModel(({ index, prompt }) => (hangs !== '' && JSON.stringify(prompt.at(-1)).includes('Slowly') ? { text: hangs.split(/(?<= )/), hang: { parts: hangs.split(' ').length + 1 } } : `Answer number ${index} of many, in a few words.`)) })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}`, clock }), logger: silentLogger, clock })
const server = await serve(heed, { port: Number(port), ...(origin === undefined ? {} : { cors: { origin } }) })
process.stdout.write(`${server.url}\n`)
