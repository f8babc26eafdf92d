import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, Memory, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { missing, rows, studioBrowser, why, write } from './opened.ts'

const target = { threadId: 't1', resourceId: 'user-1' }
const at = '/threads/t1?agent=guide&resource=user-1'

/** Fills the form of a signal, and sends it; resolves with what the form says about it. */
async function sent(page: Page, kind: string, text: string, fill?: () => Promise<unknown>): Promise<string> {
  await page.getByRole('button', { name: 'Signal…' }).click()
  const dialog = page.locator('dialog')
  await dialog.getByLabel(kind, { exact: true }).check()
  await dialog.getByLabel('Text').fill(text)
  await fill?.()
  await dialog.getByRole('button', { name: 'Send', exact: true }).click()
  const status = dialog.locator('[role=status]')
  await status.waitFor()
  const said = await status.textContent()
  await dialog.getByRole('button', { name: 'Close' }).click()
  return said ?? ''
}

describe.skipIf(missing)(`what is changed in the panels of Studio${why}`, () => {
  const { opened } = studioBrowser()

  it('[Y3.3] every kind of signal is sent by hand, with its behavior for an idle thread', async () => {
    const model = scriptedModel(({ prompt }) => `Read ${prompt.filter(({ role }) => role === 'user').length}.`)
    const { open, client } = await opened({ guide: new Agent({ id: 'guide', model }) })
    const agent = client.getAgent('guide')
    const page = await open(at)
    const quietly = () => page.locator('dialog').getByLabel('While it is idle').selectOption('persist')
    const lastRow = async () => (await rows(page)).at(-1)
    expect(await sent(page, 'message', 'Hello.')).toMatch(/^Stored as /)
    await expect.poll(lastRow).toBe('agent: Read 1.')
    expect(await sent(page, 'queued message', 'And then?')).toMatch(/^Queued as /)
    await expect.poll(lastRow).toBe('agent: Read 2.')
    expect(await sent(page, 'signal', 'The door <b>opens</b>.', quietly)).toMatch(/^Stored as /)
    await expect.poll(() => page.locator('.row-signal').last().textContent()).toContain('The door <b>opens</b>.')
    expect(await sent(page, 'state', 'a.ts is open.', async () => {
      await page.locator('dialog').getByLabel('Lane').fill('editor')
      await page.locator('dialog').getByLabel('Value, as JSON').fill('{"file":"a.ts"}')
      await quietly()
    })).toMatch(/^Stored as /)
    expect(await sent(page, 'state', 'The cursor is in line 7.', async () => {
      await page.locator('dialog').getByLabel('Lane').fill('editor')
      await page.locator('dialog').getByLabel('Mode').selectOption('delta')
      await page.locator('dialog').getByLabel('Change, as JSON').fill('{"line":7}')
      await quietly()
    })).toMatch(/^Stored as /)
    const lane = await agent.getLane({ ...target, id: 'editor' })
    expect([lane?.version, lane?.snapshot?.value, lane?.deltas.map(({ delta }) => delta)]).toEqual([2, { file: 'a.ts' }, [{ line: 7 }]])
    await page.getByRole('tab', { name: 'Lanes' }).click()
    await expect.poll(() => page.locator('.lane header').textContent()).toBe('editor version 2')
    expect(await sent(page, 'notification', 'The disk is full.')).toMatch(/^Decided: /)
    expect(await sent(page, 'schedule', 'Report.')).toMatch(/^First sent at /)

    await open('/schedules', page)
    const row = page.locator('tbody tr', { hasText: 'Report.' })
    await row.getByRole('button', { name: 'Pause' }).click()
    await expect.poll(() => row.locator('.chip').textContent()).toBe('paused')
    await row.getByRole('button', { name: 'Resume' }).click()
    await expect.poll(() => row.locator('.chip').textContent()).toBe('active')
    await row.getByRole('button', { name: 'Remove' }).click()
    await page.locator('.empty', { hasText: 'No schedules.' }).waitFor()
    expect((await agent.schedules.list(target)).schedules).toEqual([])
  })

  it('[Y3.3] working memory is edited while a run begins and ends, restored, and of two edits at once the second is shown the first', async () => {
    const guide = new Agent({ id: 'guide', model: scriptedModel(() => 'Yes.'), memory: new Memory({ options: { workingMemory: { enabled: true } } }) })
    const { open, client } = await opened({ guide })
    const memory = client.getAgent('guide').memory({ resourceId: target.resourceId })
    const stored = () => memory.getWorkingMemory({ threadId: 't1' })
    const page = await open(at)
    await write(page, 'Hello.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Yes.')
    await page.getByRole('tab', { name: 'Memory' }).click()
    const field = page.getByLabel('Working memory')
    await page.getByRole('button', { name: 'Edit' }).click()
    await field.fill('Likes trains.')
    // A run begins and ends meanwhile: the field stays, with its text and the place of the cursor.
    await field.evaluate((element) => element.setAttribute('data-kept', ''))
    await client.getAgent('guide').sendMessage({ message: 'Again.', ...target })
    await expect.poll(async () => (await rows(page)).filter((row) => row === 'agent: Yes.')).toHaveLength(2)
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    expect(await page.locator('[data-kept]').inputValue()).toBe('Likes trains.')
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(true)
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(stored).toBe('Likes trains.')

    await page.getByRole('button', { name: 'Edit' }).click()
    await field.fill('Likes boats.')
    await memory.updateWorkingMemory({ threadId: 't1', workingMemory: 'Likes planes.' })
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.panel .failed', { hasText: 'working_memory_conflict' }).waitFor()
    await expect.poll(() => page.locator('.panel [role=status] .json').textContent()).toBe('Likes planes.')
    expect(await field.inputValue()).toBe('Likes boats.')
    expect(await stored()).toBe('Likes planes.')
    await page.getByRole('button', { name: /^Replace version 2/ }).click()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(stored).toBe('Likes boats.')

    await page.locator('.panel .history li', { hasText: 'v1' }).getByRole('button', { name: 'Restore' }).click()
    await expect.poll(stored).toBe('Likes trains.')
    await expect.poll(() => page.locator('.panel section.card').textContent()).toContain('version 4')
  })

  it('[Y3.10] a parked run is listed with its error for a person to decide, and retried', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'heed.db')
    const model = scriptedModel(() => ({ text: 'Never', hang: true }))
    const lost = new Agent({ id: 'guide', model })
    const heed = new Heed({ agents: { lost }, storage: new LibSQLStore({ url: `file:${path}` }), logger: silentLogger })
    await lost.sendMessage('Go.', target).outcome
    await expect.poll(() => model.callCount).toBe(1)
    await heed.close()
    // As ten processes leave it that died with it.
    const file = new DatabaseSync(path, { timeout: 60_000 })
    file.exec('UPDATE heed_runs SET attempts = 10')
    file.close()
    const guide = new Agent({ id: 'guide', model: scriptedModel(['At last.'], { loop: true }) })
    const { open } = await opened({ guide }, { storage: new LibSQLStore({ url: `file:${path}` }) })
    const page = await open('/attention')
    const card = page.locator('.parked')
    await card.waitFor()
    expect(await card.textContent()).toMatch(/^Parked on t1/)
    expect(await card.locator('.fields').textContent()).toContain('run_parked')
    await expect.poll(() => page.locator('.navigation .count').first().textContent()).toBe('1')
    await card.getByRole('button', { name: 'Retry from step 0' }).click()
    await page.locator('.empty', { hasText: 'Nothing waits for a decision.' }).waitFor()
    await open(at, page)
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: At last.')
  })
})
