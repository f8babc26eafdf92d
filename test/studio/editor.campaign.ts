import { describe, expect, it } from 'vitest'
import { HeedEditor } from '../../src/editor/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { missing, rows, studioBrowser, why, write } from './opened.ts'

const look = createTool({ id: 'look', description: 'Looks up an order.', inputSchema: { type: 'object', properties: {} }, execute: async () => 'found' })
/** Answers with the instructions and the number of tools that the model gets. */
const echo = () => scriptedModel(({ prompt, tools = [] }) => `${JSON.stringify(prompt[0]?.content)} with ${tools.length} tools`)
const support = () => new Agent({ id: 'support', name: 'Support', instructions: 'Answer questions.\nBe kind.', model: echo(), tools: { look } })
const at = '/agents/support/versions'

describe.skipIf(missing)(`versions of agents in Studio${why}`, () => {
  const { opened } = studioBrowser()

  it('[Y3.7] an agent is edited, compared, tried, published to some and to all, and rolled back, with who, when and why', async () => {
    const agent = support()
    const { open, heed, client } = await opened({ agent }, { heed: { editor: new HeedEditor() } })
    const editor = heed.getEditor()
    const page = await open(at)
    const instructions = page.getByRole('textbox', { name: 'Instructions' })
    await instructions.fill('Answer questions.\nBe short.')
    expect(await page.locator('.diff-removed').allTextContents()).toEqual(['− removed: Be kind.\n'])
    expect(await page.locator('.diff-added mark').allTextContents()).toEqual(['short'])
    await page.getByRole('checkbox', { name: 'look' }).uncheck()
    await page.getByRole('button', { name: 'Compare', exact: true }).click()
    await page.getByRole('button', { name: 'Edit', exact: true }).first().click()
    expect(await instructions.inputValue()).toBe('Answer questions.\nBe short.')
    await page.getByLabel('Why', { exact: true }).fill('answers were long')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await expect.poll(() => page.locator('.versions-list tbody tr').first().textContent()).toMatch(/^1 on codedraftlocal.*answers were long/)
    expect((await editor.listVersions('support')).versions.map(({ version, by, why: reason }) => [version, by, reason])).toEqual([[1, 'local', 'answers were long']])

    // The draft is tried: no other run gets it.
    await expect.poll(() => page.locator('.agent-try h2').textContent()).toBe('Try version 1')
    await write(page, 'Hello?')
    await expect.poll(async () => (await rows(page)).at(-1)).toBe('agent: "Answer questions.\\nBe short." with 0 tools')
    await write(page, 'And queued?', 'Queue')
    await expect.poll(async () => (await rows(page)).filter((row) => row.includes('Be short')).length).toBe(2)
    expect((await agent.generate('Hello?')).text).toContain('Be kind')

    // For one tenant.
    await page.getByRole('button', { name: 'Publish', exact: true }).first().click()
    await page.getByLabel('All runs get').selectOption('what code says')
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByLabel('Resources, one a line').fill('acme')
    await page.getByLabel('Request context').fill('{"plan": ')
    await page.getByRole('form', { name: 'Publish' }).getByRole('button', { name: 'Publish' }).click()
    await expect.poll(() => page.locator('.failed').textContent()).toContain('The context of rule 1 must be JSON')
    await page.getByLabel('Request context').fill('{"plan": ["pro", 2]}')
    await page.getByRole('form', { name: 'Publish' }).getByRole('button', { name: 'Publish' }).click()
    await page.getByRole('button', { name: 'Releases (1)' }).click()
    expect(await page.locator('.releases li').first().textContent()).toMatch(/^Release 1: all runs get what code sayscounts nowversion 1 for resources acme, and plan is pro or 2local, now/)
    expect((await editor.describe('support')).release?.rules).toEqual([{ version: 1, resources: ['acme'], context: { plan: ['pro', 2] } }])

    // For all, and back.
    await page.getByRole('button', { name: 'Publish', exact: true }).first().click()
    await page.getByLabel('All runs get').selectOption('version 1')
    expect(await page.getByLabel('Request context').inputValue()).toBe('{"plan":["pro",2]}')
    await page.getByRole('button', { name: 'Remove rule 1' }).click()
    await page.getByLabel('Why', { exact: true }).fill('it was better')
    await page.getByRole('form', { name: 'Publish' }).getByRole('button', { name: 'Publish' }).click()
    await expect.poll(() => page.locator('.agent-about > p').first().textContent()).toBe('Runs get version 1.')
    expect((await agent.generate('Hello?')).text).toContain('Be short')
    await page.getByRole('button', { name: 'Releases (2)' }).click()
    await page.getByLabel('Why it is rolled back').fill('too short')
    await page.getByRole('button', { name: 'Roll back to the release before' }).click()
    await expect.poll(() => page.locator('.releases li').first().textContent()).toMatch(/^Release 3: all runs get what code says \(rolled back to release 1\).*too short/)
    expect((await agent.generate('Hello?')).text).toContain('Be kind')
    expect((await client.getAgent('support').editor.listReleases()).releases.map(({ why: reason }) => reason)).toEqual(['too short', 'it was better', undefined])

    // Each state has an address.
    await page.goto(`${page.url().split('?')[0]}?show=compare&from=0&to=1`)
    await expect.poll(() => page.locator('.differences h3').allTextContents()).toEqual(['instructions', 'tool look'])
  })

  it('[Y3.11] instructions are split into blocks, a prompt block is made, published and referred to, and a preview shows what a run reads', async () => {
    const requestContextSchema = { type: 'object', properties: { plan: { type: 'string' } } } as const
    const agent = new Agent({ id: 'support', name: 'Support', instructions: 'Answer questions.', model: echo(), tools: { look }, requestContextSchema })
    const { open, heed } = await opened({ agent }, { heed: { editor: new HeedEditor() } })
    const editor = heed.getEditor()
    const page = await open('/prompt-blocks')
    await page.getByLabel('Id of the new block').fill('tone')
    await page.getByRole('button', { name: 'New block' }).click()
    await page.getByLabel('Text').fill("Be kind to {{plan || 'free'}} users.")
    await page.getByLabel('Rules').fill('{"operator"')
    expect(await page.locator('.problem').textContent()).toContain('no JSON yet')
    await page.getByLabel('Rules').fill('')
    await page.getByLabel('Why').fill('first')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await page.getByRole('button', { name: 'Publish version 1' }).click()
    await expect.poll(() => page.locator('.page > p').first().textContent()).toContain('Runs get version 1')
    expect(await editor.prompts.describe('tone')).toMatchObject({ isDraft: false, latest: { by: 'local', why: 'first' } })
    await page.getByLabel('Text').fill('Be short.')
    expect(await page.locator('.diff-added').first().textContent()).toContain('Be short.')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await page.getByRole('button', { name: 'Publish version 2' }).click()
    await page.getByRole('button', { name: 'Roll back to the release before' }).click()
    await expect.poll(() => page.locator('.page > p').first().textContent()).toContain('Runs get version 1. Version 2 is a draft.')

    await page.goto(page.url().replace(/\/prompt-blocks.*/, at))
    await page.getByRole('button', { name: 'Split into blocks' }).click()
    await page.getByRole('button', { name: 'Add a block' }).click()
    await page.getByLabel('Kind of block 2').selectOption('Prompt block')
    await page.getByRole('button', { name: 'Add a block' }).click()
    await page.getByLabel('Kind of block 3').selectOption('Text for some requests')
    await page.getByLabel('Text of block 3').fill('They pay.')
    await page.getByLabel('Rules of block 3').fill('{"operator":"AND","conditions":[{"field":"plan","operator":"equals","value":"pro"}]}')
    await page.getByRole('button', { name: 'Move block 3 up' }).click()
    await page.getByText('What a run would read').click()
    await page.getByLabel('Request context, as JSON').fill('{"plan":"pro"}')
    await page.getByRole('checkbox', { name: 'drafts of prompt blocks too' }).uncheck()
    await page.getByRole('button', { name: 'Show' }).click()
    await expect.poll(() => page.locator('.preview-text').textContent()).toBe('Answer questions.\n\nThey pay.\n\nBe kind to pro users.')
    await page.getByLabel('Request context, as JSON').fill('')
    await page.getByRole('button', { name: 'Show' }).click()
    await expect.poll(() => page.locator('.preview-text').textContent()).toBe('Answer questions.\n\nBe kind to free users.')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await expect.poll(async () => (await editor.listVersions('support')).versions.map(({ overrides }) => overrides.instructions)).toEqual([[
      { type: 'text', content: 'Answer questions.' },
      { type: 'prompt_block', content: 'They pay.', rules: { operator: 'AND', conditions: [{ field: 'plan', operator: 'equals', value: 'pro' }] } },
      { type: 'prompt_block_ref', id: 'tone' },
    ]])
    await expect.poll(() => page.locator('.agent-try h2').textContent()).toBe('Try version 1')
    await write(page, 'Hello?')
    await expect.poll(async () => (await rows(page)).at(-1)).toContain('Be kind to free users.')
  })

  it('[Y3.7] of two editors at once the second sees what the first stored, and loses nothing of its own', async () => {
    const { open, heed } = await opened({ agent: support() }, { heed: { editor: new HeedEditor() } })
    const page = await open(at)
    await page.getByRole('textbox', { name: 'Instructions' }).fill('Answer questions.\nMine.')
    await heed.getEditor().save('support', { base: 0, instructions: 'Answer all questions.\nBe kind.', by: 'ann', why: 'hers' })
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await page.locator('.conflict').waitFor()
    expect(await page.locator('.conflict p').first().textContent()).toBe('ann stored version 1 now: hers. Yours is not stored, and stays here.')
    expect((await heed.getEditor().listVersions('support')).versions).toHaveLength(1)
    await page.getByRole('button', { name: 'Show the difference' }).click()
    await expect.poll(() => page.locator('.conflict .diff-added').allTextContents()).toEqual(['+ added: Answer all questions.\n', '+ added: Answer questions.\n', '+ added: Mine.\n'])
    await page.getByRole('button', { name: 'Save mine on top of version 1' }).click()
    await expect.poll(() => page.locator('.versions-list tbody tr').count()).toBe(3)
    const { versions } = await heed.getEditor().listVersions('support')
    expect(versions.map(({ base, by, overrides }) => [base, by, overrides.instructions])).toEqual([
      [1, 'local', 'Answer questions.\nMine.'], [0, 'ann', 'Answer all questions.\nBe kind.'],
    ])
    // A release that another one made in between.
    await page.getByRole('button', { name: 'Publish', exact: true }).first().click()
    await heed.getEditor().publish('support', { version: 1, expected: 0, by: 'ann' })
    await page.getByRole('form', { name: 'Publish' }).getByRole('button', { name: 'Publish' }).click()
    await expect.poll(() => page.locator('.conflict').textContent()).toContain('ann made release 1')
    expect((await heed.getEditor().describe('support')).release).toMatchObject({ release: 1, version: 1 })
    await page.getByRole('button', { name: 'Read the releases again' }).click()
    await expect.poll(() => page.locator('.agent-about > p').first().textContent()).toContain('Runs get version 1.')
  })

  it('[Y3.7] what code owns cannot be typed, and the page says so without an editor and without the scope', async () => {
    const locked = new Agent({ id: 'support', instructions: 'Answer.', model: echo(), tools: { look }, editor: { tools: { description: true } } })
    const { open } = await opened({ agent: locked }, { heed: { editor: new HeedEditor() } })
    const page = await open(at)
    await page.getByRole('textbox', { name: 'Instructions (code owns them)' }).waitFor()
    expect(await page.getByRole('textbox', { name: 'Instructions (code owns them)' }).isEditable()).toBe(false)
    expect(await page.getByRole('checkbox', { name: 'look' }).isDisabled()).toBe(true)
    await page.getByLabel('Description of look').fill('Finds an order by its number.')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await page.getByRole('button', { name: 'Compare version 1' }).waitFor()
    const without = await opened({ agent: support() })
    const other = await without.open(at)
    await expect.poll(() => other.locator('.empty-title').textContent()).toBe('This agent is not edited here.')
    const key = 'a-key-of-sixteen-or-more'
    const limited = await opened({ agent: support() }, { heed: { editor: new HeedEditor() }, auth: apiKeys({ [key]: { id: 'user', resources: ['user-1'] } }) })
    const theirs = await limited.open(at)
    await theirs.getByLabel('Key').fill(key)
    await theirs.getByRole('button', { name: 'Open' }).click()
    await expect.poll(() => theirs.locator('.failed').textContent()).toContain("'edit'")
  })
})
