import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { held } from '../browser/browsing.ts'
import { violations } from './accessible.ts'
import { missing, rows, studioBrowser, why, write } from './opened.ts'

const target = { threadId: 't1', resourceId: 'user-1' }
const at = '/threads/t1?agent=guide&resource=user-1'

/** What a row of the table of signals says, in the words of `explain()`. */
const tableOf = (page: Page) => page.locator('.moments tbody tr').evaluateAll((all) => all.map((row) => {
  const cell = (of: string) => row.querySelector(`[data-of=${of}]`)
  const time = (of: string) => cell(of)?.querySelector('time')?.dateTime
  const step = /step (\d+)/.exec(cell('runId')?.textContent ?? '')?.[1]
  const facts = {
    id: (row as HTMLElement).dataset.signal, state: cell('state')?.textContent, route: cell('route')?.textContent, acceptedAt: time('acceptedAt'),
    drainedAt: time('drainedAt'), settledAt: time('settledAt'), owner: (cell('owner') as HTMLElement | null)?.dataset.value,
    runId: (cell('runId') as HTMLElement | null)?.dataset.value, step: step === undefined ? undefined : Number(step), reason: cell('reason')?.textContent || undefined,
  }
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}))

describe.skipIf(missing)(`what Studio shows of the past${why}`, () => {
  const { opened } = studioBrowser()

  it('[Y3.4] the timeline says of each signal what explain() says, as a table and as a picture', async () => {
    const { look, running, go } = held()
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'Second.'])
    const agent = new Agent({ id: 'guide', model, tools: { look } })
    const { open, client } = await opened({ guide: agent })
    const page = await open(at)
    await write(page, 'Plan a trip.')
    await running
    await write(page, 'I prefer <b>trains</b>.')
    await write(page, 'A second run.', 'Queue')
    await write(page, 'A third run.', 'Queue')
    await page.locator('.queue li', { hasText: 'A third run.' }).getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.queue li', { hasText: 'A third run.' }).waitFor({ state: 'detached' })
    go()
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Second.')
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    await page.getByLabel('Message', { exact: true }).blur()
    await page.keyboard.press('t')
    await page.locator('.timeline').waitFor()
    const { signals } = await client.getAgent('guide').listSignals(target)
    const explained = await Promise.all(signals.toReversed().map(async ({ id }) => {
      const { agentId: _, run: __, epoch: ___, ...facts } = await client.getAgent('guide').explain({ ...target, signalId: id })
      return facts
    }))
    expect(explained).toHaveLength(4)
    const marks = await page.locator('.timeline-row.signal').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('.mark')].map((mark) => [mark.getAttribute('class')?.split('mark-')[1], Number((mark as SVGElement).dataset.at)])))
    expect(marks).toEqual(explained.map(({ acceptedAt, drainedAt, settledAt, state }) => {
      return [['accepted', acceptedAt], ['drained', drainedAt], [state, settledAt]].flatMap(([kind, time]) => (time === undefined ? [] : [[kind, Date.parse(time)]]))
    }))
    await page.keyboard.press('v')
    await page.locator('.moments').waitFor()
    expect(await tableOf(page)).toEqual(explained)
    // The words of the table are whole on a small screen, and nothing of it is outside of the page.
    await page.setViewportSize({ width: 1280, height: 800 })
    const heights = await page.locator('.moments [data-of=state]').evaluateAll((cells) => cells.map((cell) => {
      const text = document.createRange()
      text.selectNodeContents(cell)
      return text.getClientRects().length
    }))
    expect(heights).toEqual(explained.map(() => 1))
    expect(await page.locator('.page').evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0)
    await page.keyboard.press('v')
    expect(await page.locator('.timeline-row.process').count()).toBe(1)
    expect(await page.locator('.step-bar').count()).toBe(3)
    await page.getByRole('button', { name: 'I prefer <b>trains</b>.' }).click()
    expect(await page.locator('.signal-facts').textContent()).toMatch(/waited .* taken .* under epoch \d+, for run .* step 1, answered/)
    // The address shows the same again.
    await page.reload()
    await page.locator('.signal-facts').waitFor()
    await page.locator('.step-bar').nth(1).click()
    await page.locator('.prompt-page h1', { hasText: 'step 1' }).waitFor()
  })

  it('[Y3.5] the prompt of a past step is shown byte by byte, its parts by source and tokens, and the prefix that it shares with the call before', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: { where: '<Bern> & "Basel"' } }] }, 'By train.', 'At ten.'])
    const { look, go } = held()
    let place = 'Zurich'
    const agent = new Agent({ id: 'guide', instructions: () => `You plan trips from ${place}.`, model, tools: { look } })
    const { open, client } = await opened({ guide: agent })
    go()
    const page = await open(at)
    await write(page, 'Plan a trip.')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: By train.')
    await expect.poll(() => page.locator('.thread-head .status').textContent()).toBe('idle')
    place = 'Geneva'
    await write(page, 'When?')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: At ten.')
    await page.getByRole('tab', { name: 'Runs' }).click()
    await expect.poll(() => page.locator('.run .steps li').count()).toBe(3)
    await page.locator('.run').last().getByRole('link', { name: 'step 0' }).click()
    const shown = async (call: number) => {
      await expect.poll(() => page.locator('.raw-prompt').textContent()).toBe(JSON.stringify(model.calls[call]?.prompt))
      expect(await page.locator('.raw-tools').textContent()).toBe(JSON.stringify(model.calls[call]?.tools))
      expect(await page.locator('.prompt-facts .chip').textContent()).toBe('the bytes that the model received')
    }
    await page.locator('.parts').waitFor()
    await page.keyboard.press('o')
    await shown(0)
    await page.keyboard.press(']')
    await shown(1)
    await page.keyboard.press('o')
    expect(await page.locator('.parts .label').allTextContents()).toEqual(['tools', 'instructions', 'input', 'response', 'response'])
    expect(await page.locator('.parts tbody tr').evaluateAll((all) => all.map((row) => /part-(\w+)/.exec(row.className)?.[1]))).toEqual(['kept', 'kept', 'kept', 'added', 'added'])
    await expect.poll(() => page.locator('.prefix-text').allTextContents()).toEqual(['the first call of the thread', expect.stringMatching(/^100 % of the call before kept/)])
    await page.locator('.parts button').nth(2).click()
    expect(await page.locator('.part-text').textContent()).toBe('Plan a trip.')
    // Other instructions break the prefix at their own part.
    const [second] = (await client.getAgent('guide').listRuns(target)).runs
    await open(`/threads/t1/runs/${second?.runId}/steps/0`, page)
    await expect.poll(() => page.locator('.prefix-text').textContent()).toMatch(/changed at part 2 \(instructions\)$/)
    await expect.poll(() => page.locator('.difference del').textContent()).toMatch(/^Zurich/)
    expect(await page.locator('.difference ins').textContent()).toMatch(/^Geneva/)
  })

  it('[Y3.9] the page of an agent has its instructions whole, its tools with their schemas, and a thread to try it on', async () => {
    const instructions = [Array.from({ length: 60 }, (_, index) => `Rule ${index}: <b>be</b> brief, and say which train you take.`).join('\n'), 'Be kind.']
    const { look, go } = held()
    const agent = new Agent({ id: 'guide', name: 'Guide', instructions, model: scriptedModel(['Yes.']), tools: { look } })
    const { open } = await opened({ guide: agent })
    go()
    const page = await open('/agents/guide')
    await expect.poll(() => page.locator('.instructions').allTextContents()).toEqual(instructions)
    expect(await page.locator('.agent-about').textContent()).toContain('guide, scripted/scripted')
    await page.locator('.tool summary').click()
    expect(JSON.parse((await page.locator('.tool .json').textContent()) ?? '')).toMatchObject({ type: 'object' })
    expect(await violations(page)).toEqual([])
    await write(page, 'Hello?')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: Yes.')
  })
})
