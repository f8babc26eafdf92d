import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { firstLoad } from '../../scripts/build-studio.ts'
import { apiKeys, createHandler } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import { studio } from '../../src/studio/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { builtStudio } from './opened.ts'

const agents = () => ({ guide: new Agent({ id: 'guide', model: scriptedModel(['Yes.'], { loop: true }) }) })
let folder = ''
beforeAll(async () => {
  folder = await builtStudio()
})

describe('the pages of Studio', () => {
  it('[Y1.1] are answered below their path, each path of a view with the one page, under a policy that lets it load its own files only', async () => {
    const { server } = await served(agents(), { studio: studio({ folder }) })
    for (const path of ['/studio', '/studio/', '/studio/threads/a%2Fb?panel=queue', '/studio/index.html']) {
      const response = await fetch(server.url + path)
      expect({ path, status: response.status, type: response.headers.get('content-type') }).toEqual({ path, status: 200, type: 'text/html; charset=utf-8' })
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
      expect(policy).not.toMatch(/unsafe|https?:/)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      const html = await response.text()
      expect(html).toContain('data-api="/api" data-base="/studio"')
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style|https?:|\son\w+=/)
    }
    const root = await fetch(`${server.url}/`, { redirect: 'manual' })
    expect([root.status, root.headers.get('location')]).toEqual([302, '/studio'])
  })

  it('[Y1.1] have files whose names change with their contents, which browsers keep, and no other file of the machine', async () => {
    const { server } = await served(agents(), { studio: studio({ folder }) })
    const names = readdirSync(join(folder, 'assets')).filter((name) => !name.endsWith('.br'))
    for (const name of names) {
      expect(name).toMatch(/-[\w-]{8}\.(js|css|svg)$/)
      const response = await fetch(`${server.url}/studio/assets/${name}`, { headers: { 'accept-encoding': 'gzip, br' } })
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(response.headers.get('content-encoding')).toBe('br')
      const plain = await fetch(`${server.url}/studio/assets/${name}`, { headers: { 'accept-encoding': 'identity' } })
      expect(await plain.text()).toBe(await response.text())
    }
    for (const path of ['/assets/missing.js', '/assets/..%2Findex.html', '/assets/../../package.json', '/assets', '/assets/index.html']) {
      const response = await fetch(`${server.url}/studio${path}`.replace('/../', '/%2e%2e/'))
      expect({ path, body: await response.text() }).not.toMatchObject({ body: expect.stringContaining('"name"') })
    }
    expect((await fetch(`${server.url}/studio/assets/missing.js`)).status).toBe(404)
    const post = await fetch(`${server.url}/studio`, { method: 'POST' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    const head = await fetch(`${server.url}/studio`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  it('[Y1.1] are at the configured path, also through createHandler(), and absent without the option', async () => {
    const heed = new Heed({ agents: agents(), storage: new InMemoryStore() })
    const handler = createHandler(heed, { auth: 'local', prefix: '/v1', studio: studio({ folder, path: '/ops/studio' }) })
    const page = await handler(new Request('http://localhost/ops/studio/agents'))
    expect(await page.text()).toContain('data-api="/v1" data-base="/ops/studio"')
    expect((await handler(new Request('http://localhost/studio'))).status).toBe(404)
    handler.close()
    const without = createHandler(heed, { auth: 'local' })
    expect((await without(new Request('http://localhost/studio'))).status).toBe(404)
    without.close()
    expect(() => createHandler(heed, { studio: {} as never })).toThrow("studio must be studio() of 'heed/studio'")
    expect(() => createHandler(heed, { studio: studio({ folder, path: '/api/studio' }) })).toThrow('at another path than the routes, /api')
    expect(() => studio({ path: 'studio' })).toThrow('path')
    expect(() => studio({ folder: join(folder, 'assets') })).toThrow('npm run build')
    await heed.close()
  })

  it('[Y1.2] need no credentials and have no data: what the page shows comes from the routes, with the rights of its user', async () => {
    const key = 'a-key-of-sixteen-or-more'
    const { server } = await served(agents(), { studio: studio({ folder }), auth: apiKeys({ [key]: { id: 'ops', resources: '*' } }) })
    const page = await fetch(`${server.url}/studio`)
    expect(page.status).toBe(200)
    expect(await page.text()).not.toContain('guide')
    expect((await fetch(`${server.url}/api/agents`)).status).toBe(401)
  })

  it('[Y1.3] load less than 200 kB of scripts and 12 kB of styles at first, gzipped', () => {
    const { script, style } = firstLoad(folder)
    expect(script).toBeGreaterThan(10_000)
    expect(script).toBeLessThan(200_000)
    expect(style).toBeGreaterThan(1_000)
    expect(style).toBeLessThan(12_000)
  })
})
