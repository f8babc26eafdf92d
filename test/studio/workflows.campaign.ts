import { describe, expect, it } from 'vitest'
import { HeedEditor } from '../../src/editor/index.ts'
import { createScorer } from '../../src/scorers/index.ts'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { everyLook } from './accessible.ts'
import { missing, studioBrowser, why, write } from './opened.ts'

const text = { type: 'string' } as const

describe.skipIf(missing)(`workflows and scores in Studio${why}`, () => {
  const { newPage, opened } = studioBrowser()

  it('[Y3.8] a run of a workflow is started, followed step by step, answered, and begun again from a step; another is cancelled', async () => {
    const go = Promise.withResolvers<void>()
    const price = createStep({ id: 'price', inputSchema: { type: 'object' }, outputSchema: { type: 'number' }, execute: () => go.promise.then(() => 400) })
    const approve = createStep({
      id: 'approve', inputSchema: { type: 'number' }, outputSchema: text,
      execute: async ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend({ question: `${inputData} francs?` }) : `paid ${inputData}`),
    })
    const buy = createWorkflow({ id: 'buy', description: 'Buys a thing.', inputSchema: { type: 'object' }, outputSchema: text })
      .then(price).then(approve).waitForEvent('shipped').map(async ({ getStepResult }) => String(getStepResult('approve'))).commit()
    const { open, client } = await opened({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, { heed: { workflows: { buy } } })
    const page = await open('/workflows')
    await page.getByRole('link', { name: 'buy' }).click()
    await expect.poll(() => page.locator('.graph > li .mono').allTextContents()).toEqual(['price', 'approve', 'shipped', expect.any(String)])
    await page.getByText('Start a run').click()
    await page.getByRole('textbox', { name: 'Input, as JSON' }).fill('{"item": ')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await expect.poll(() => page.locator('.failed').textContent()).toContain('The input must be JSON')
    await page.getByRole('textbox', { name: 'Input, as JSON' }).fill('{"item": "bicycle"}')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    const steps = () => page.locator('.run-step > summary').evaluateAll((all) => all.map((one) => `${one.querySelector('b')?.textContent} ${one.querySelector('.chip')?.textContent}`))
    await expect.poll(steps).toEqual(['price running'])
    go.resolve()
    await expect.poll(steps).toEqual(['price success', 'approve suspended'])
    const answer = page.getByRole('form', { name: 'Answer approve' })
    expect(await answer.locator('.json').textContent()).toContain('400 francs?')
    await answer.getByRole('textbox').fill('{"ok": true}')
    await answer.getByRole('button', { name: 'Continue the run' }).click()
    await expect.poll(steps).toEqual(['price success', 'approve success', 'shipped waiting'])
    await page.getByText('Send an event to this run').click()
    await page.getByRole('form', { name: 'Event' }).getByRole('textbox', { name: 'Name' }).fill('shipped')
    await page.getByRole('form', { name: 'Event' }).getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => page.locator('.page-head .chip').textContent()).toBe('success')
    const address = page.url()
    expect(await page.locator('h2:has-text("Result") + .json').textContent()).toBe('paid 400')

    // Another run, from a step of this one.
    await page.locator('.run-step > summary').nth(1).click()
    await page.getByRole('button', { name: 'Begin another run from approve' }).click()
    await page.getByRole('form', { name: 'Answer approve' }).waitFor()
    expect(page.url()).not.toBe(address)
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await expect.poll(() => page.locator('.page-head .chip').textContent()).toBe('canceled')
    await page.getByRole('link', { name: 'buy', exact: true }).click()
    await expect.poll(() => page.locator('tbody .chip').allTextContents()).toEqual(['canceled', 'success'])
    await page.getByLabel('Status').selectOption('success')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    expect((await client.getWorkflow('buy').runs()).total).toBe(2)
    await page.goto(address)
    await expect.poll(steps).toHaveLength(3)
  })

  it('[Y3.8] the scores of runs are listed with their reasons, and beside their runs', async () => {
    const short = createScorer({ id: 'short', description: 'At most two words.' })
      .generateScore(({ run }) => (JSON.stringify(run.output).length > 0 ? 0.25 : 1)).generateReason(() => 'It has three words.')
    const agent = new Agent({ id: 'guide', model: scriptedModel(['It is fine.'], { loop: true }), scorers: { short: { scorer: short } } })
    const { open } = await opened({ guide: agent })
    const page = await open('/threads/t1?agent=guide&resource=user-1&panel=runs')
    await write(page, 'How is it?')
    await expect.poll(() => page.locator('.panel .run').textContent(), { timeout: 20_000 }).toContain('short: 0.25 It has three words.')
    await page.keyboard.press('Escape')
    await page.locator('main').focus()
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await expect.poll(() => page.locator('tbody tr td').allTextContents()).toEqual([expect.stringMatching(/^short/), '0.25', 'It has three words.', 't1', 'guide', expect.any(String)])
    await page.getByLabel('State').selectOption('failed')
    await expect.poll(() => page.locator('.empty-title').textContent()).toBe('No score matches.')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.locator('tbody a').click()
    await page.locator('.panel .run').waitFor()
  })

  it('[Y3.1] axe finds nothing in the views of workflows, scores and versions', async () => {
    const ask = createStep({ id: 'ask', inputSchema: text, outputSchema: text, execute: ({ inputData, suspend }) => suspend({ question: inputData }) })
    const fail = createStep({ id: 'fail', inputSchema: text, outputSchema: text, execute: () => Promise.reject(new Error('It is broken.')) })
    const flow = (id: string) => createWorkflow({ id, inputSchema: text, outputSchema: text })
    const editor = new HeedEditor()
    const short = createScorer({ id: 'short', description: 'Short.' }).generateScore(() => 0.5).generateReason(() => 'Half.')
    const agent = new Agent({ id: 'guide', instructions: 'Be kind.', model: scriptedModel(['Yes.'], { loop: true }), scorers: { short: { scorer: short } } })
    const { server, client } = await opened({ guide: agent }, { heed: { workflows: { ask: flow('ask').then(ask).commit(), fail: flow('fail').then(fail).commit() }, editor } })
    await client.getWorkflow('ask').createRun({ runId: 'r1', resourceId: 'user-1' }).start({ inputData: 'Now?' })
    await client.getWorkflow('fail').createRun({ runId: 'r2', resourceId: 'user-1' }).start({ inputData: 'Now?' })
    const { version } = await editor.save('guide', { base: 0, instructions: 'Be short.', by: 'ann', why: 'it was long' })
    await editor.publish('guide', { version, expected: 0, rules: [{ version: 0, resources: ['acme'] }], by: 'ann' })
    await client.getAgent('guide').sendMessage({ message: 'Hello.', threadId: 't1', resourceId: 'user-1' })
    await expect.poll(async () => (await client.listScores()).scores[0]?.state).toBe('scored')
    await everyLook(newPage, `${server.url}/studio`, {
      '/workflows': '.graph', '/workflows/ask': 'tbody tr', '/workflows/ask/runs/r1?resource=user-1': '.approval', '/workflows/fail/runs/r2?resource=user-1': '.row-error',
      '/scores': 'tbody tr', '/agents/guide/versions': '.versions-list', '/agents/guide/versions?show=compare&from=0&to=1': '.difference',
      '/agents/guide/versions?show=publish': '.rule', '/agents/guide/versions?show=releases': '.releases li', '/threads/t1?panel=runs': '.panel .run',
    })
  })
})
