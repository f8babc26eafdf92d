import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Agent } from '../../src/index.ts'
import { jwt } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const issuer = 'https://issuer.example'
const pairs = {
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  other: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed: generateKeyPairSync('ed25519'),
  short: generateKeyPairSync('rsa', { modulusLength: 1024 }),
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
}
const jwk = (kid: keyof typeof pairs, more: object = {}) => ({ ...pairs[kid].publicKey.export({ format: 'jwk' }), kid, ...more })

/** An issuer that publishes its keys, as long as it is up. */
async function published(...keys: object[]) {
  const state = { keys, up: true, asked: 0 }
  const server = createServer((_request, response) => {
    state.asked++
    if (!state.up) response.writeHead(503).end()
    else response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: state.keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => {
    server.closeAllConnections()
    server.close(() => resolve())
  }))
  return { state, jwks: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json` }
}

const signers: Record<string, (key: KeyObject, data: Buffer) => Buffer> = {
  RS256: (key, data) => sign('sha256', data, key),
  RS512: (key, data) => sign('sha512', data, key),
  ES256: (key, data) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
  EdDSA: (key, data) => sign(null, data, key),
}

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const soon = () => Math.floor(Date.now() / 1_000) + 60

function token({ alg = 'RS256', kid = 'rsa', by = 'rsa', header = {}, ...claims }: { alg?: string; kid?: string | undefined; by?: keyof typeof pairs; header?: object } & Record<string, unknown> = {}): string {
  const data = `${part({ alg, kid, ...header })}.${part({ iss: issuer, aud: 'heed', sub: 'user-1', exp: soon(), ...claims })}`
  return `${data}.${signers[alg]?.(pairs[by].privateKey, Buffer.from(data)).toString('base64url') ?? ''}`
}

async function world(...keys: object[]) {
  const { state, jwks } = await published(...keys)
  const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, { auth: jwt({ jwks, issuer, audience: 'heed' }) })
  const status = async (bearer: string) => (await ask('/memory/threads?resourceId=user-1', { headers: { authorization: `Bearer ${bearer}` } })).status
  return { state, status, ask }
}

afterEach(() => void vi.useRealTimers())

describe('tokens of an issuer', () => {
  it('[H3.5] are known by the keys it publishes, and open the threads of their subject alone', async () => {
    const { status, ask, state } = await world(jwk('rsa'), jwk('ec'), jwk('ed'))
    expect(await status(token())).toBe(200)
    expect(await status(token({ alg: 'ES256', kid: 'ec', by: 'ec' }))).toBe(200)
    expect(await status(token({ alg: 'EdDSA', kid: 'ed', by: 'ed', aud: ['other', 'heed'] }))).toBe(200)
    expect(await status(token({ sub: 'user-2' }))).toBe(403)
    expect((await ask('/agents')).status).toBe(401)
    expect(state.asked).toBe(1)
  })

  const wrong: Array<[string, () => string]> = [
    ['an unknown key', () => token({ kid: 'nobody' })],
    ['no key named, of several', () => token({ header: { kid: undefined } })],
    ['the wrong key of two', () => token({ kid: 'ec' })],
    ['a key that signs for somebody else', () => token({ by: 'other' })],
    ['the right signature in a way that is not taken', () => token({ alg: 'RS512' })],
    ['no signature, said so', () => token({ alg: 'none' })],
    ['no signature, said otherwise', () => token().replace(/[^.]*$/, '')],
    ['a public key taken for a secret', () => {
      const data = token({ alg: 'HS256' }).slice(0, -1)
      return `${data}.${createHmac('sha256', pairs.rsa.publicKey.export({ type: 'spki', format: 'pem' })).update(data).digest('base64url')}`
    }],
    ['a way named like a property of objects', () => token({ alg: 'toString' })],
    ['claims changed after it was signed', () => token().replace(/\.[^.]*\./, `.${part({ iss: issuer, aud: 'heed', sub: 'user-1', exp: soon() + 1 })}.`)],
    ['an end that has passed', () => token({ exp: soon() - 120 })],
    ['no end', () => token({ exp: undefined })],
    ['an end that is no number', () => token({ exp: '9999999999' })],
    ['a beginning that has not come', () => token({ nbf: soon() + 60 })],
    ['another audience', () => token({ aud: 'other' })],
    ['another issuer', () => token({ iss: 'https://other.example' })],
    ['no subject', () => token({ sub: undefined })],
    ...[42, null, '', {}, ['user-1'], true].map((sub): [string, () => string] => [`a subject that is ${JSON.stringify(sub)}`, () => token({ sub })]),
    ['a header that must be understood', () => token({ header: { crit: ['exp'] } })],
    ['four parts', () => `${token()}.x`],
    ['no token at all', () => 'rubbish'],
  ]
  it.each(wrong)('[H3.5] are refused with %s', async (_what, made) => {
    const { status } = await world(jwk('rsa'), jwk('ec'))
    expect(await status(token())).toBe(200)
    expect(await status(made())).toBe(401)
  })

  it('[H3.5] are verified by new keys once they are published, and unauthenticated requests do not make the server fetch them', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, status } = await world(jwk('rsa'))
    expect(await status(token())).toBe(200)
    state.keys = [jwk('rsa'), jwk('ec')]
    for (let index = 0; index < 20; index++) expect(await status(token({ kid: `stranger-${index}` }))).toBe(401)
    expect(state.asked).toBe(1)
    vi.setSystemTime(Date.now() + 61_000)
    expect(await status(token({ alg: 'ES256', kid: 'ec', by: 'ec' }))).toBe(200)
    for (let index = 0; index < 20; index++) expect(await status(token({ kid: `stranger-${index}` }))).toBe(401)
    expect(state.asked).toBe(2)
  })

  it('[H3.5] stay good while their issuer is down, and become good when it is back', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, status } = await world(jwk('rsa'))
    state.up = false
    for (let index = 0; index < 20; index++) expect(await status(token())).toBe(401)
    expect(state.asked).toBe(1)
    state.up = true
    vi.setSystemTime(Date.now() + 6_000)
    expect(await status(token())).toBe(200)
    state.up = false
    vi.setSystemTime(Date.now() + 61_000)
    expect(await status(token({ kid: 'stranger' }))).toBe(401)
    expect(await status(token())).toBe(200)
  })

  it('[H3.5] are refused ten minutes after their key was removed, at the latest', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, status } = await world(jwk('rsa'), jwk('ec'))
    expect(await status(token())).toBe(200)
    state.keys = [jwk('ec')]
    vi.setSystemTime(Date.now() + 599_000)
    expect(await status(token())).toBe(200)
    vi.setSystemTime(Date.now() + 2_000)
    expect(await status(token())).toBe(401)
    expect(await status(token({ alg: 'ES256', kid: 'ec', by: 'ec' }))).toBe(200)
    expect(state.asked).toBe(2)
  })

  it('[H3.5] are verified by a new key under the same name after one reload, which forged tokens cause once a minute at most', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, status } = await world(jwk('rsa'))
    expect(await status(token())).toBe(200)
    state.keys = [jwk('other', { kid: 'rsa' })]
    for (let index = 0; index < 20; index++) expect(await status(token({ by: 'other' }))).toBe(401)
    expect(state.asked).toBe(1)
    vi.setSystemTime(Date.now() + 61_000)
    const rotated = await Promise.all(Array.from({ length: 20 }, () => status(token({ by: 'other' }))))
    expect(new Set(rotated)).toEqual(new Set([200]))
    for (let index = 0; index < 20; index++) expect(await status(token())).toBe(401)
    expect(state.asked).toBe(2)
  })

  it('[H3.5] stay good for an hour while their issuer is down, and no longer', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, status } = await world(jwk('rsa'))
    expect(await status(token())).toBe(200)
    state.up = false
    vi.setSystemTime(Date.now() + 3_599_000)
    expect(await status(token())).toBe(200)
    vi.setSystemTime(Date.now() + 2_000)
    expect(await status(token())).toBe(401)
    state.up = true
    vi.setSystemTime(Date.now() + 6_000)
    expect(await status(token())).toBe(200)
  })

  it('[H3.5] have the two periods that the server chooses', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { state, jwks } = await published(jwk('rsa'))
    const auth = jwt({ jwks, issuer, audience: 'heed', maxKeyAgeSeconds: 30, maxOutageSeconds: 40 })
    const call = () => auth(new Request('http://heed.example', { headers: { authorization: `Bearer ${token()}` } }))
    expect(await call()).toMatchObject({ id: 'user-1' })
    state.up = false
    vi.setSystemTime(Date.now() + 31_000)
    expect(await call()).toMatchObject({ id: 'user-1' })
    expect(state.asked).toBe(2)
    vi.setSystemTime(Date.now() + 10_000)
    await expect(call()).rejects.toMatchObject({ code: 'unauthorized', retryable: true })
    for (const wrong of [{ maxKeyAgeSeconds: 0 }, { maxKeyAgeSeconds: Number.NaN }, { maxOutageSeconds: -1 }, { maxKeyAgeSeconds: 60, maxOutageSeconds: 30 }]) {
      expect(() => jwt({ jwks, issuer, audience: 'heed', ...wrong })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    }
  })

  it('[H3.5] are refused without the address of the keys, which the log of the server has', async () => {
    const { state, jwks } = await published(jwk('rsa'))
    state.up = false
    const lines: string[] = []
    const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, {
      auth: jwt({ jwks, issuer, audience: 'heed' }), logger: { debug: log, info: log, warn: log, error: log },
    })
    const answer = await ask('/agents', { headers: { authorization: `Bearer ${token()}` } })
    expect(answer.status).toBe(401)
    expect(await answer.text()).not.toMatch(/127\.0\.0\.1|jwks/)
    expect(lines.filter((line) => line.includes(jwks))).toHaveLength(1)
    expect(lines.find((line) => line.includes(jwks))).toContain('503')
  })

  it('[H3.5] need a key of the curve that their way of signing has', async () => {
    const { status } = await world(jwk('p384'))
    expect(await status(token({ alg: 'ES256', kid: 'p384', by: 'p384' }))).toBe(401)
  })

  it('[H3.5] are known by a key of their kind where several have one name', async () => {
    const { status } = await world(jwk('rsa', { kid: 'same' }), jwk('ec', { kid: 'same' }), jwk('ed', { kid: 'same' }))
    expect(await status(token({ kid: 'same' }))).toBe(200)
    expect(await status(token({ alg: 'ES256', kid: 'same', by: 'ec' }))).toBe(200)
    expect(await status(token({ alg: 'EdDSA', kid: 'same', by: 'ed' }))).toBe(200)
    expect(await status(token({ kid: 'same', by: 'other' }))).toBe(401)
  })

  it('[H3.5] do not suffer from keys beside theirs that are of another kind or use', async () => {
    const { status } = await world({ kty: 'oct', kid: 'secret', k: 'AAAA' }, { kty: 'new', kid: 'unknown' }, jwk('rsa'), jwk('ec', { use: 'enc' }))
    expect(await status(token())).toBe(200)
    expect(await status(token({ alg: 'ES256', kid: 'ec', by: 'ec' }))).toBe(401)
  })

  it.each([
    ['another way of signing', { alg: 'RS512' }],
    ['a way of encrypting', { alg: 'RSA-OAEP' }],
    ['something that is no way', { alg: 1 }],
    ['encryption', { use: 'enc' }],
    ['other operations', { key_ops: ['encrypt', 'wrapKey'] }],
    ['no operation', { key_ops: [] }],
    ['what is no list of operations', { key_ops: 'verify' }],
  ])('[H3.5] are not taken by a key that is declared for %s, named or not', async (_what, more) => {
    const { status, state } = await world(jwk('rsa', more))
    expect(await status(token())).toBe(401)
    expect(await status(token({ header: { kid: undefined } }))).toBe(401)
    expect(state.asked).toBe(1)
  })

  it('[H3.5] are known by each of several keys of one kind and name', async () => {
    const { status } = await world(null as never, jwk('rsa', { kid: 'same', n: 'AQAB' }), jwk('other', { kid: 'same' }), jwk('rsa', { kid: 'same' }))
    expect(await status(token({ kid: 'same' }))).toBe(200)
    expect(await status(token({ kid: 'same', by: 'other' }))).toBe(200)
    expect(await status(token({ alg: 'ES256', kid: 'same', by: 'ec' }))).toBe(401)
    expect(await status(token({ kid: 'same' }).replace(/[^.]*$/, ''))).toBe(401)
  })

  it('[H3.5] are refused with an RSA key that is too short, and with one that cannot be read', async () => {
    const { status } = await world(jwk('short'), jwk('rsa', { n: 1 }))
    expect(await status(token({ kid: 'short', by: 'short' }))).toBe(401)
    expect(await status(token())).toBe(401)
  })

  it('[H3.5] are verified with keys that are given, and with the only one where they name none', async () => {
    const call = (bearer: string) => new Request('http://heed.example', { headers: { authorization: `Bearer ${bearer}` } })
    const auth = jwt({ jwks: { keys: [jwk('rsa'), jwk('ec', { use: 'enc' })] }, issuer, audience: 'heed', principal: ({ sub }) => ({ id: `${sub}!`, resources: [] }) })
    expect(await auth(call(token()))).toEqual({ id: 'user-1!', resources: [] })
    expect(await auth(call(token({ header: { kid: undefined } })))).toEqual({ id: 'user-1!', resources: [] })
    expect(await auth(call(token({ kid: 'ec' })))).toBe(null)
  })

  it('[H3.5] cause one request for keys where many come at once, and a retryable error where the issuer does not answer', async () => {
    const { state, jwks } = await published(jwk('rsa'))
    const call = () => new Request('http://heed.example', { headers: { authorization: `Bearer ${token()}` } })
    const auth = jwt({ jwks, issuer, audience: 'heed' })
    expect(await Promise.all(Array.from({ length: 20 }, async () => auth(call())))).toHaveLength(20)
    expect(state.asked).toBe(1)
    state.up = false
    await expect(jwt({ jwks, issuer, audience: 'heed' })(call())).rejects.toMatchObject({ code: 'unauthorized', retryable: true })
  })

  it.each([
    ['inside the tolerance', -29, 29, 200],
    ['outside the tolerance', -31, 0, 401],
    ['too early', 60, 32, 401],
  ])('[H3.5] may be %s of 30 s', async (_what, exp, nbf, expected) => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const { status } = await world(jwk('rsa'))
    const now = Date.now() / 1_000
    expect(await status(token({ exp: now + exp, nbf: now + nbf }))).toBe(expected)
  })

  it.each(['issuer.example/keys', '', {}, { keys: 'none' }])('need keys: %j is refused when the server is set up', (jwks) => {
    expect(() => jwt({ jwks: jwks as string, issuer, audience: 'heed' })).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { option: 'jwks' } }))
  })

  it('[H3.5] are verified by a key that is declared for them, also beside one of the same name that is not', async () => {
    const { status } = await world(jwk('other', { kid: 'rsa', alg: 'PS256' }), jwk('rsa', { alg: 'RS256', use: 'sig', key_ops: ['verify'] }))
    expect(await status(token())).toBe(200)
  })
})
