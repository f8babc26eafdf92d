import axe from 'axe-core'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'

/** What axe finds wrong on the page as it is. */
export async function violations(page: Page, which: axe.RunOptions = {}): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source)
  const options: axe.RunOptions = { resultTypes: ['violations'], ...which }
  const { violations: found } = await page.evaluate((given) => (globalThis as unknown as { axe: typeof axe }).axe.run(document, given), options)
  return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`))
}

/**
 * Opens each path, waits for the content that its view shows, and expects that axe finds nothing, in both themes and on a phone, and that
 * nothing is wider than the screen.
 */
export async function everyLook(newPage: (options: BrowserContextOptions) => Promise<Page>, url: string, views: Record<string, string>): Promise<void> {
  // The themes differ in their colors alone, and a phone has the colors of a wide screen. Contrast is what takes axe longest.
  const colors = { runOnly: { type: 'rule' as const, values: ['color-contrast'] } }
  const noColors = { rules: { 'color-contrast': { enabled: false } } }
  const kinds = [{ viewport: { width: 1440, height: 900 } }, { viewport: { width: 390, height: 844 }, hasTouch: true }]
  for (const kind of kinds) {
    const page = await newPage({ ...kind, reducedMotion: 'reduce' })
    for (const [path, content] of Object.entries(views)) {
      await page.goto(url + path)
      await page.locator(content).first().waitFor()
      expect({ path, ...kind, found: await violations(page, noColors) }).toEqual({ path, ...kind, found: [] })
      for (const colorScheme of kind.hasTouch ? [] : (['light', 'dark'] as const)) {
        await page.emulateMedia({ colorScheme })
        expect({ path, colorScheme, found: await violations(page, colors) }).toEqual({ path, colorScheme, found: [] })
      }
      const wider = () => [document.documentElement, ...document.querySelectorAll('.page')].map((element) => element.scrollWidth - element.clientWidth)
      expect(new Set(await page.evaluate(wider)), path).toEqual(new Set([0]))
    }
  }
}
