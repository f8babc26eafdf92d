import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { chromium, type Page } from 'playwright-core'
import { Agent, Heed, InMemoryStore } from 'heed'
import { HeedEditor } from 'heed/editor'
import { serve } from 'heed/server'
import { studio } from 'heed/studio'
import { scriptedModel } from 'heed/testing'
import { createStep, createWorkflow } from 'heed/workflows'
import { newFolder } from './parts/folder.ts'
import { until } from './parts/until.ts'

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

const path = process.env.HEED_CHROMIUM
const options = path ? {} : { skip: 'Chromium is not installed' }
const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

/** A server of the package in a process of its own. */
async function started(file: string, port: string, hangs = false): Promise<{ url: string; kill: () => Promise<void> }> {
  const program = join(import.meta.dirname, 'parts', 'studio-process.ts')
  const child = spawn(process.execPath, [program, file, port, ...(hangs ? ['hangs'] : [])], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  for await (const url of createInterface({ input: child.stdout })) return { url, kill }
  throw new Error('The server ended before it listened.')
}

test('two browsers on a thread outlive a kill of the server amid an answer, and one amid an approval', options, async () => {
  const file = join(newFolder(), 'heed.db')
  let server = await started(file, '0', true)
  const { url } = server
  const { port } = new URL(url)
  // No name is resolved: an outgoing connection would fail, and be noted.
  const browser = await chromium.launch({ executablePath: path as string, args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'] })
  const hosts = new Set<string>()
  const opened = async () => {
    const page = await (await browser.newContext()).newPage()
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    await page.goto(`${url}/studio/threads/t1?agent=guide&resource=user-1`)
    return page
  }
  const write = async (page: Page, text: string) => {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.keyboard.press('Enter')
  }
  const last = (page: Page) => () => page.locator('.row .markdown, .row .plain').allTextContents().then((all) => all.at(-1))
  try {
    const [one, two] = [await opened(), await opened()]
    await write(one, 'Slowly.')
    for (const page of [one, two]) await until(last(page), 'Once upon a time')
    await two.reload()
    await until(last(two), 'Once upon a time')
    await one.getByLabel('Message', { exact: true }).fill('A draft')
    await server.kill()
    await until(() => one.locator('.connection').textContent(), 'lost')
    server = await started(file, port)
    // The lease of the lost process has to expire.
    for (const page of [one, two]) await until(last(page), 'Once upon a time, again.')
    assert.equal(await one.getByLabel('Message', { exact: true }).inputValue(), 'A draft')
    await write(two, evil)
    for (const page of [one, two]) await until(last(page), 'Seen.')
    assert.equal(await one.locator('.row-user .plain').last().textContent(), evil)
    assert.equal(await one.evaluate(() => 'hacked' in globalThis), false)
    await write(one, 'Pay.')
    await one.locator('.approval').waitFor()
    await server.kill()
    server = await started(file, port)
    await two.reload()
    await two.locator('.approval').getByRole('button', { name: 'Approve' }).click()
    for (const page of [one, two]) await until(last(page), 'Paid.')
    // The lost lease and the process that took the run over are in the timeline.
    await one.goto(`${url}/studio/threads/t1/timeline`)
    await one.locator('.lease.is-lost').waitFor({ state: 'attached' })
    assert.ok((await one.locator('.timeline-row.process').count()) >= 2)
    assert.deepEqual([...hosts], [`127.0.0.1:${port}`])
  } finally {
    await browser.close()
    await server.kill()
  }
})

test('an agent is edited and a run of a workflow is answered in the Studio of the package', options, async () => {
  const guide = new Agent({ id: 'guide', instructions: 'Be kind.', model: scriptedModel(({ prompt }) => JSON.stringify(prompt[0]?.content)) })
  const text = { type: 'string' } as const
  const ask = createStep({
    id: 'ask', inputSchema: text, outputSchema: text,
    execute: async ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend({ question: inputData }) : `${inputData} Yes.`),
  })
  const flow = createWorkflow({ id: 'flow', inputSchema: text, outputSchema: text }).then(ask).commit()
  const heed = new Heed({ agents: { guide }, workflows: { flow }, editor: new HeedEditor(), storage: new InMemoryStore() })
  const server = await serve(heed, { port: 0, handleSignals: false, studio: studio() })
  const browser = await chromium.launch({ executablePath: path as string, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    await page.goto(`${server.url}/studio/agents/guide/versions`)
    await page.getByRole('textbox', { name: 'Instructions' }).fill('Be short.')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await page.locator('.agent-try h2', { hasText: 'version 1' }).waitFor()
    await page.getByLabel('Message', { exact: true }).fill('Hello?')
    await page.keyboard.press('Enter')
    await page.locator('.row-agent', { hasText: 'Be short.' }).waitFor()
    assert.match((await guide.generate('Hello?')).text, /Be kind/)
    await page.getByRole('button', { name: 'Publish version 1' }).click()
    await page.getByRole('form', { name: 'Publish' }).getByRole('button', { name: 'Publish' }).click()
    await page.locator('.agent-about', { hasText: 'Runs get version 1.' }).waitFor()
    assert.match((await guide.generate('Hello?')).text, /Be short/)
    await page.goto(`${server.url}/studio/workflows/flow`)
    await page.getByText('Start a run').click()
    await page.getByRole('textbox', { name: 'Input, as JSON' }).fill('"Now?"')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('textbox', { name: 'Answer, as JSON' }).fill('{}')
    await page.getByRole('button', { name: 'Continue the run' }).click()
    await page.locator('.page-head .chip', { hasText: 'success' }).waitFor()
    await until(() => page.locator('h2:has-text("Result") + .json').textContent(), 'Now? Yes.')
  } finally {
    await browser.close()
    await server.close()
  }
})
