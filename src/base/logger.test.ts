import { afterEach, describe, expect, it, vi } from 'vitest'
import { Agent } from '../agent/agent.ts'
import { Heed } from '../heed/heed.ts'
import { consoleLogger, createConsoleLogger, redacting, type Logger } from './logger.ts'
import { keepSecret, redact, redactText } from './redact.ts'
import { WebhookSignals } from '../sources/index.ts'
import { InMemoryStore } from '../index.ts'
import { scriptedModel } from '../testing/index.ts'

afterEach(() => vi.unstubAllEnvs())

function kept(): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const keep = (message: string, fields?: unknown) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  return { logger: { debug: keep, info: keep, warn: keep, error: keep }, lines }
}

describe('redaction', () => {
  it.each([
    ['authorization: Bearer abc.def-ghi_jkl', 'abc.def-ghi_jkl'],
    ['Incorrect API key provided: sk-proj-aBcDeFgHiJkLmNoP1234.', 'sk-proj-aBcDeFgHiJkLmNoP1234'],
    ['invalid x-api-key sk-ant-api03-AAAABBBBCCCCDDDD', 'sk-ant-api03-AAAABBBBCCCCDDDD'],
    ['GET https://api.example/v1?key=1&api_key=zyxwvuts12 failed', 'zyxwvuts12'],
    ['{"headers":{"Authorization":"Basic dXNlcjpwYXNz","Cookie":"session=12345678"}}', 'dXNlcjpwYXNz'],
    ['{"headers":{"Cookie":"session=12345678"}}', '12345678'],
    ['libsql://user:hunter2hunter2@db.example/x', 'hunter2hunter2'],
    ['whsec_c2VjcmV0LXNlY3JldA== was wrong', 'c2VjcmV0LXNlY3JldA'],
    ['webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=', 'K5oZfzN95Z9UVu1EsfQm'],
    ['x-hub-signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17', '757107ea0eb2509f'],
    ['ghp_0123456789abcdefghij pushed', 'ghp_0123456789abcdefghij'],
    ['AIzaSyA0123456789012345678901234567890 is no key', 'AIzaSyA01234567890'],
    ['token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl expired', 'eyJzdWIiOiIxIn0'],
    ['-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----', 'MIIEvQIBADANBg'],
    ['password=correct-horse', 'correct-horse'],
    ['GET https://api.example/?token=abcdefghijkl&page=1 failed', 'abcdefghijkl'],
    ['libsql://h.example?authToken=abcdefghijkl', 'abcdefghijkl'],
    ['{"idToken":"abcdefghijkl"}', 'abcdefghijkl'],
    ['{"password":"correct horse battery"}', 'battery'],
    [JSON.stringify({ password: 'a"bcdefghijk' }), 'bcdefghijk'],
    [JSON.stringify(JSON.stringify({ password: 'correct horse', user: 'ada' })), 'horse'],
    [JSON.stringify({ body: JSON.stringify({ text: JSON.stringify({ apiKey: 'q"uoted horse' }) }) }), 'uoted'],
    ['{"passphrase":"correct horse","n":1}', 'horse'],
    ["{ privateKey: 'abcdefghijkl' }", 'abcdefghijkl'],
    ['credentials=ada:abcdefghijkl', 'abcdefghijkl'],
    ['x-signature: abcdefghijkl', 'abcdefghijkl'],
    ['Cookie: theme=dark; session=12345678', '12345678'],
    ['postgres://u:p@ssword@host/db', 'ssword'],
    ['x-goog-api-key: abcdefghijkl', 'abcdefghijkl'],
  ])('[T2.1] hides what looks like a secret: %s', (text, secret) => {
    expect(redactText(text)).not.toContain(secret)
    expect(redactText(text)).toContain('[redacted]')
  })

  it.each(['thread t1 of user-7 stopped at step 3', 'A prompt of 1200 tokens is above the limit.', 'run_01HZY3 was aborted: the token limit', 'see https://api.example/docs?page=2#a', 'basic understanding of tokens', 'Unexpected token \'<\', "<!DOCTYPE "... is not valid JSON', '{"inputTokens":1200,"password":null}'])(
    '[T2.1] leaves what is none: %s', (text) => expect(redactText(text)).toBe(text),
  )

  it('[T2.1] hides fields by their names, however deep, in errors and their causes, and keeps numbers', () => {
    const error = new Error('401 for Bearer abcdefgh12345678', { cause: new Error('sk-proj-0123456789abcdef') })
    const shown = redact({ runId: 'r1', tokens: 5, maxTokens: 9, apiKey: 'x', nested: [{ headers: new Headers({ authorization: 'x', accept: 'text/plain' }) }], clientSecret: { a: 1 }, error })
    expect(shown).toEqual({
      runId: 'r1', tokens: 5, maxTokens: 9, apiKey: '[redacted]', nested: [{ headers: { authorization: '[redacted]', accept: 'text/plain' } }], clientSecret: '[redacted]',
      error: { name: 'Error', message: '401 for Bearer [redacted]', cause: { name: 'Error', message: '[redacted]' } },
    })
  })

  it('[T2.1] hides the keys of the environment and secrets that were given, which have no shape', () => {
    vi.stubEnv('STRANGE_API_KEY', 'correct horse battery')
    keepSecret('staple in the barn')
    expect(redactText('refused: correct horse battery, staple in the barn')).toBe('refused: [redacted], [redacted]')
  })

  it('[T2.1] hides secrets that are the name of a field, in lists of pairs, in sets and in texts that are JSON', () => {
    const shown = redact({ 'sk-proj-0123456789abcdef': 1, headers: [['authorization', 'abc'], ['accept', 'text/plain']], keys: new Set(['sk-proj-0123456789abcdef']), file: Buffer.from('abc'), url: new URL('https://a.example/?token=abcdefghijkl'), sent: '{"password":"abc def"}' })
    expect(shown).toEqual({ '[redacted]': 1, headers: [['authorization', '[redacted]'], ['accept', 'text/plain']], keys: ['[redacted]'], file: '[3 bytes]', url: 'https://a.example/?token=[redacted]', sent: '{"password":"[redacted]"}' })
  })

  it('[T2.1] cuts long texts, and leaves no part of a secret at the cut', () => {
    const shown = redact({ long: `${'sk-proj-0123456789abcdef '.repeat(1_000)}${'word '.repeat(5_000_000 / 5)}`, atTheCut: `${'x'.repeat(32_768 + 1_010)}: Bearer abcdefghijklmnopqrstuvwxyz`.padEnd(100_000) })
    expect(JSON.stringify(shown).length).toBeLessThan(70_000)
    expect(JSON.stringify(shown)).not.toMatch(/0123456789abcdef|abcdefghij/)
  })

  it.each([
    'a.', 'a.b-c+', 'eyJaaaaaa-', 'eyJaaaaaa.', 'a://b:', 'a+b://u:p@', 'basic token ', 'Bearer ', 'sk-', 'password   ', 'password:"\\', 'token="', "token='", '-----BEGIN PRIVATE KEY', '-----BEGIN PRIVATE KEY-----', 'cookie:a', '\\"',
  ])('[T2.1] its work grows as the text does, whatever that says: %s', (unit) => {
    /** The least of several measurements, because garbage of other files is collected in between: two, and more until one is below the limit. */
    const work = (length: number, limit: number) => {
      const text = unit.repeat(Math.ceil(length / unit.length))
      let least = Number.POSITIVE_INFINITY
      for (let times = 0; times < 2 || (times < 20 && least >= limit); times++) {
        const before = process.threadCpuUsage()
        redactText(text, Number.POSITIVE_INFINITY)
        const { user, system } = process.threadCpuUsage(before)
        least = Math.min(least, user + system)
      }
      return least
    }
    let before = work(16_000, Number.POSITIVE_INFINITY)
    // Four times the text; were it quadratic, sixteen times the work.
    for (const length of [64_000, 256_000, 1_024_000]) {
      const limit = 9 * Math.max(before, 10_000)
      const now = work(length, limit)
      expect(now).toBeLessThan(limit)
      before = now
    }
  })

  it('[T2.1] never throws, whatever it is given', () => {
    const cyclic: Record<string, unknown> = { big: 1n, when: new Date(Number.NaN), call: () => 1 }
    cyclic.self = cyclic
    const trap = new Proxy({}, { ownKeys: () => { throw new Error('no') } })
    expect(JSON.stringify(redact({ cyclic, trap }))).toContain('[deeper]')
  })
})

describe('loggers', () => {
  it('[T2.1] gives no secret to any logger that a program passes: not of a webhook, not in what a provider says', async () => {
    const { logger, lines } = kept()
    const secret = 'a-webhook-secret-without-a-shape'
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']) })
    const source = new WebhookSignals({ id: 'shop', secret })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), sources: [source], logger })
    await agent.generate('Hello.', { onFinish: () => Promise.reject(new Error(`sk-proj-0123456789abcdef and ${secret}`)) })
    heed.logger.warn('refused', { authorization: 'abc', url: 'https://u:passpass@example.com' })
    await heed.close()
    expect(lines).toHaveLength(2)
    expect(lines[0]).toContain("onFinish of agent 'a' failed")
    expect(lines.join()).not.toMatch(/0123456789abcdef|webhook-secret|passpass|"abc"/)
  })

  it('[T2.2] a console logger writes from its level on, to read or as JSON, and warnings by default', () => {
    const written = (options: Parameters<typeof createConsoleLogger>[0]) => {
      const lines: string[] = []
      const logger = createConsoleLogger({ ...options, write: (line) => void lines.push(line) })
      for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level](`at ${level}`, { n: 1 })
      return lines
    }
    expect(written({})).toEqual(['heed warn: at warn {"n":1}\n', 'heed error: at error {"n":1}\n'])
    expect(written({ level: 'debug' })).toHaveLength(4)
    expect(written({ level: 'silent' })).toEqual([])
    expect(written({ level: 'error', json: true }).map((line) => JSON.parse(line) as unknown)).toEqual([{ time: expect.any(String), level: 'error', message: 'at error', n: 1 }])
  })

  it('[T2.2] a logger that throws fails nothing, and one is wrapped once', () => {
    const broken = () => { throw new Error('disk full') }
    const logger = redacting({ debug: broken, info: broken, warn: broken, error: broken })
    expect(() => logger.error('x')).not.toThrow()
    expect(redacting(logger)).toBe(logger)
    expect(redacting(consoleLogger)).toBe(consoleLogger)
  })

  it('[T2.2] an asynchronous logger that rejects fails nothing', async () => {
    const unheard: unknown[] = []
    const hear = (error: unknown) => void unheard.push(error)
    process.on('unhandledRejection', hear)
    let asked = 0
    const gone = async () => {
      asked++
      throw new Error('the log server is gone')
    }
    redacting({ debug: gone, info: gone, warn: gone, error: gone }).error('x')
    createConsoleLogger({ write: gone }).error('y')
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', hear)
    expect([asked, unheard]).toEqual([2, []])
  })
})
