import { chromium } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { site } from './site.ts'

const found = await findProgram('chromium')

it.skipIf('missing' in found)(`[H1.8] the client watches, sends and reads in a worker of Chromium${whySkipped(found)}`, async () => {
  const pages = await site(['worker'])
  onTestFinished(() => pages.close())
  const { server } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Hello, worker.']) }) }, { cors: { origin: [pages.url] } })
  const browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox'] })
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  page.setDefaultTimeout(180_000)
  await page.goto(`${pages.url}/worker?server=${encodeURIComponent(server.url)}&thread=t1`)
  await expect.poll(() => page.title()).toMatch(/^(?:\{|failed)/)
  expect(JSON.parse(await page.title())).toEqual({ text: 'Hello, worker.', roles: ['signal', 'assistant'], refused: 'invalid_signal' })
})
