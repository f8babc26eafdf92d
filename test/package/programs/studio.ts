import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, Heed, InMemoryStore } from 'heed'
import { serve } from 'heed/server'
import { studio } from 'heed/studio'
import { scriptedModel } from 'heed/testing'

test('the package has the pages of Studio, with every file that they load', async () => {
  const guide = new Agent({ id: 'guide', model: scriptedModel(['Yes.']) })
  const server = await serve(new Heed({ agents: { guide }, storage: new InMemoryStore() }), { port: 0, handleSignals: false, studio: studio() })
  try {
    const page = await fetch(`${server.url}/studio/threads`)
    assert.equal(page.status, 200)
    const html = await page.text()
    const files = Array.from(html.matchAll(/(?:src|href)="([^"]+)"/g), ([, path]) => path ?? '')
    assert.ok(files.length >= 3, html)
    for (const path of files) assert.equal((await fetch(server.url + path)).status, 200, path)
  } finally {
    await server.close()
  }
})
