import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { providerServer, scriptedModel } from '../../src/testing/index.ts'
import { recordedHeed, rejection, thrownBy } from './asking.ts'

describe('a model by its name', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  it('is loaded through the provider\'s own package, with the key and the address of the environment', async () => {
    await using server = await providerServer({ script: ['Hi.', 'Ho.'] })
    vi.stubEnv('OPENAI_API_KEY', 'key-1')
    vi.stubEnv('OPENAI_BASE_URL', server.openai.baseURL)
    vi.stubEnv('ANTHROPIC_API_KEY', 'key-2')
    vi.stubEnv('ANTHROPIC_BASE_URL', server.anthropic.baseURL)
    expect((await new Agent({ id: 'a', model: 'openai/gpt-x' }).generate('Go.')).text).toBe('Hi.')
    expect((await new Agent({ id: 'a', model: 'anthropic/claude-x' }).generate('Go.')).text).toBe('Ho.')
    expect(server.requests.map(({ protocol, headers, body }) => [protocol, body.model, headers.authorization ?? headers['x-api-key']])).toEqual([
      ['openai-responses', 'gpt-x', 'Bearer key-1'],
      ['anthropic-messages', 'claude-x', 'key-2'],
    ])
  })

  it('may be found for the request, and stand in a list', async () => {
    await using server = await providerServer({ script: [{ error: { status: 400 } }] })
    vi.stubEnv('OPENAI_API_KEY', 'key-1')
    vi.stubEnv('OPENAI_BASE_URL', server.openai.baseURL)
    const agent = new Agent({ id: 'a', heed: recordedHeed().heed, model: () => ['openai/gpt-x', scriptedModel(['Second.'])] })
    expect((await agent.generate('Go.')).text).toBe('Second.')
    expect(server.requests).toHaveLength(1)
  })

  it.each(['nobody/gpt', 'gpt-5', '/gpt', 'openai/', ''])('%j is refused when the agent is made', (model) => {
    expect(thrownBy(() => new Agent({ id: 'a', model: model as 'a/b' }))).toMatchObject({ name: 'HeedError', code: 'unknown_provider' })
    expect(thrownBy(() => new Agent({ id: 'a', model: [scriptedModel([]), model as 'a/b'] }))).toMatchObject({ code: 'unknown_provider' })
  })

  it('says which are known, and what to do for another', () => {
    expect(thrownBy(() => new Agent({ id: 'a', model: 'nobody/gpt' }))).toMatchObject({ message: expect.stringMatching(/'nobody'.*Supported: openai, anthropic, .*pass a model object/) })
    expect(thrownBy(() => new Agent({ id: 'a', model: 'toString/gpt' }))).toMatchObject({ code: 'unknown_provider' })
  })

  it('names the package that is not installed', async () => {
    vi.stubEnv('MISTRAL_API_KEY', 'key-3')
    const error = await rejection(new Agent({ id: 'a', model: 'mistral/large' }).generate('Go.'))
    expect(error).toMatchObject({ code: 'provider_not_installed', message: expect.stringContaining('npm install @ai-sdk/mistral'), details: { package: '@ai-sdk/mistral' } })
  })

  it('tells a package that is not installed from one that can not be loaded', () => {
    const program = `
      import { Agent } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)}
      const error = await new Agent({ id: 'a', model: 'openai/gpt-x' }).generate('Go.').catch((thrown) => thrown)
      console.log(JSON.stringify(error))`
    // The package of OpenAI throws where this variable is empty.
    const env = { ...process.env, OPENAI_BASE_URL: '' }
    const { stdout } = spawnSync(process.execPath, ['--input-type=module-typescript', '--eval', program], { encoding: 'utf8', env })
    expect(JSON.parse(stdout)).toMatchObject({ code: 'provider_error', message: expect.stringMatching(/^The package @ai-sdk\/openai is installed and could not be loaded: .*baseURL/) })
  })

  it('names the variable of the key that is missing', async () => {
    vi.stubEnv('OPENAI_API_KEY', undefined)
    const error = await rejection(new Agent({ id: 'a', model: 'openai/gpt-x' }).stream('Go.'))
    expect(error).toMatchObject({ code: 'api_key_missing', message: expect.stringContaining('OPENAI_API_KEY'), details: { variable: 'OPENAI_API_KEY' } })
  })
})

describe('a model that is none', () => {
  it.each([
    ['a number', 7, /is not a model/],
    ['an object', { provider: 'x' }, /is not a model/],
    ['null', null, /is not a model/],
    ['a model of an unknown version', { specificationVersion: 'v1', doStream: () => {} }, /version 'v1'.*v4, v3 and v2/],
  ])('such as %s is refused when the agent is made', (_, model, message) => {
    expect(thrownBy(() => new Agent({ id: 'a', model: model as never }))).toMatchObject({ code: 'unsupported_model', message: expect.stringMatching(message) })
  })

  it('is refused when it is found for the request', async () => {
    expect(await rejection(new Agent({ id: 'a', model: () => 7 as never }).generate('Go.'))).toMatchObject({ code: 'unsupported_model' })
    expect(await rejection(new Agent({ id: 'a', model: () => 'nobody/x' }).generate('Go.'))).toMatchObject({ code: 'unknown_provider' })
  })

  it('may be missing until it is needed', async () => {
    expect(thrownBy(() => new Agent({ id: 'a', model: [] }))).toMatchObject({ code: 'model_missing' })
    const agent = new Agent({ id: 'a' })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ code: 'model_missing', message: expect.stringContaining("Agent 'a' has no model") })
    expect((await agent.generate('Go.', { model: scriptedModel(['Hi.']) })).text).toBe('Hi.')
  })

  it('that is only tried when others failed is loaded then', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', '')
    const { heed } = recordedHeed()
    const failing = () => scriptedModel([{ error: { status: 400 } }])
    expect((await new Agent({ id: 'a', heed, model: [scriptedModel(['First.']), 'anthropic/claude-x'] }).generate('Go.')).text).toBe('First.')
    expect((await new Agent({ id: 'a', heed, model: [failing(), 'anthropic/claude-x', scriptedModel(['Third.'])] }).generate('Go.')).text).toBe('Third.')
    expect(await rejection(new Agent({ id: 'a', heed, model: [failing(), 'anthropic/claude-x'] }).generate('Go.'))).toMatchObject({ code: 'api_key_missing' })
    expect(await rejection(new Agent({ id: 'a', heed, model: ['anthropic/claude-x', scriptedModel(['Second.'])] }).generate('Go.'))).toMatchObject({ code: 'api_key_missing' })
    expect(thrownBy(() => new Agent({ id: 'a', heed, model: [failing(), 'nobody/x'] }))).toMatchObject({ code: 'unknown_provider' })
  })
})
