// Plays the demo in Chromium and writes the pictures of docs/studio. `node scripts/studio-screenshots.ts [folder]`, after `npm run build`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { serveStudioDemo } from '../src/cli/studio-demo/studio-demo.ts'
import { tour } from '../src/cli/studio-demo/tour.ts'
import { HeedClient } from '../src/client/index.ts'
import { InMemoryStore } from '../src/index.ts'
import { studio } from '../src/studio/index.ts'
import { findProgram } from './programs.ts'

const out = resolve(process.argv[2] ?? join(import.meta.dirname, '../docs/studio'))
const pages = process.argv[3] === undefined ? {} : { folder: process.argv[3] }
const found = await findProgram('chromium')
if (!('path' in found)) throw new Error(found.missing)
mkdirSync(out, { recursive: true })

const server = await serveStudioDemo({ storage: new InMemoryStore(), studio: studio(pages), testMs: 700, deltaMs: 5, port: 0 })
const browser = await chromium.launch({ executablePath: found.path, args: ['--no-sandbox'] })
const open = async (colorScheme: 'light' | 'dark', viewport = { width: 1280, height: 800 }) => {
  const context = await browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce' })
  return context.newPage()
}
const shoot = async (page: Page, name: string) => {
  await page.waitForTimeout(600)
  const picture = (await page.screenshot()).toString('base64')
  writeFileSync(join(out, `${name}.webp`), Buffer.from(await compressed.evaluate(toWebp, picture), 'base64'))
}
const compressed = await browser.newPage()

try {
  const light = await open('light')
  await light.goto(server.studioUrl)
  const next = () => light.locator('.tour .primary').click()
  await next()
  await light.locator('.row-tool').nth(1).waitFor()
  await next()
  await light.locator('.queue li').nth(1).waitFor()
  await next()
  await light.locator('.approval').waitFor({ timeout: 30_000 })
  await shoot(light, 'thread-light')
  const dark = await open('dark')
  await dark.goto(`${server.studioUrl}?panel=lanes`)
  await dark.locator('.lane').waitFor()
  await shoot(dark, 'thread-dark')
  const phone = await open('light', { width: 390, height: 844 })
  await phone.goto(server.studioUrl)
  await phone.locator('.approval').waitFor()
  await shoot(phone, 'thread-phone')
  for (const [page, theme] of [[light, 'light'], [dark, 'dark'], [phone, 'phone']] as const) {
    await page.goto(`${server.url}/studio/attention`)
    await page.locator('.approval').waitFor()
    await shoot(page, `attention-${theme}`)
  }
  await light.goto(`${server.studioUrl}?panel=lanes`)
  await light.locator('.approval .approve').click()
  await light.locator('.row-agent', { hasText: 'CI failed' }).waitFor({ timeout: 30_000 })
  await light.getByLabel('Message', { exact: true }).fill('Post the release on the status page. Its login sends a code by SMS.')
  await light.keyboard.press('Enter')
  await light.locator('.row-watch').waitFor({ timeout: 30_000 })
  for (const view of ['threads', 'inbox', 'agents/operations', 'watches', 'schedules', 'processes']) {
    for (const [page, theme] of [[light, 'light'], [dark, 'dark'], [phone, 'phone']] as const) {
      await page.goto(`${server.url}/studio/${view}`)
      await page.locator('h1').waitFor()
      await shoot(page, `${view.split('/')[0]}-${theme}`)
    }
  }
  const agent = new HeedClient({ baseUrl: server.url }).getAgent('operations')
  const scope = { threadId: tour.threadId, resourceId: tour.resourceId }
  const longest = (await agent.listRuns(scope)).runs.toSorted((one, other) => other.steps.length - one.steps.length)[0]
  const [signal] = (await agent.listSignals(scope)).signals.toReversed()
  const inspected = {
    timeline: `timeline?signal=${signal?.id}`, prompt: `runs/${longest?.runId}/steps/${(longest?.steps.length ?? 1) - 1}`,
  }
  for (const [name, path] of Object.entries(inspected)) {
    for (const [page, theme] of [[light, 'light'], [dark, 'dark'], [phone, 'phone']] as const) {
      await page.goto(`${server.studioUrl.split('?')[0]}/${path}`)
      await page.locator('.timeline, .prefix').waitFor()
      await shoot(page, `${name}-${theme}`)
    }
  }
  const client = new HeedClient({ baseUrl: server.url })
  const asked = client.getWorkflow('announcement').createRun({ runId: 'announce-2.1.0', resourceId: scope.resourceId })
  await asked.start({ inputData: { version: '2.1.0' } })
  const [code] = (await agent.editor.describe()).code.instructions
  const shorter = { base: 0, instructions: `${code}\nAnswer in two sentences at most.`, why: 'answers were long' }
  const first = await agent.editor.save(shorter)
  await agent.editor.publish({ version: first.version, expected: 0, why: 'tried it for a day' })
  await agent.editor.save({ ...shorter, base: 1, instructions: `${code}\nAnswer in one sentence.`, tools: { read_changelog: false }, why: 'still too long' })
  const added = {
    versions: ['agents/operations/versions', '.versions-list'], workflow: [`workflows/announcement/runs/${asked.runId}?resource=${scope.resourceId}`, '.approval'],
    scores: ['scores', 'tbody tr'],
  }
  for (const [name, [path, content]] of Object.entries(added)) {
    for (const [page, theme] of [[light, 'light'], [dark, 'dark'], [phone, 'phone']] as const) {
      await page.goto(`${server.url}/studio/${path}`)
      await page.locator(content ?? 'h1').first().waitFor()
      await shoot(page, `${name}-${theme}`)
    }
  }
  await light.goto(`${server.url}/studio/agents/operations/versions?show=compare&from=1&to=2`)
  await light.locator('.difference').first().waitFor()
  await shoot(light, 'compare-light')
  for (const panel of ['watches', 'prompt', 'memory', 'inbox', 'runs']) {
    await light.goto(`${server.studioUrl}?panel=${panel}`)
    await light.locator('.panel-body > *').first().waitFor()
    await shoot(light, `panel-${panel}-light`)
  }
  await light.goto(`${server.studioUrl}?panel=recall`)
  await light.getByLabel('What to recall').fill('What failed in the tests?')
  await light.keyboard.press('Enter')
  await light.locator('.why summary').first().click()
  await shoot(light, 'panel-recall-light')
} finally {
  await browser.close()
  await server.close()
}

/** Runs in the browser, which has the encoder. */
async function toWebp(picture: string): Promise<string> {
  const image = new Image()
  image.src = `data:image/png;base64,${picture}`
  await image.decode()
  const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height })
  canvas.getContext('2d')?.drawImage(image, 0, 0)
  return canvas.toDataURL('image/webp', 0.86).split(',')[1] ?? ''
}
