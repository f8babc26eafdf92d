import type { BrowserDelta, BrowserValue } from './browser-lane.ts'

type Tab = BrowserValue['tabs'][number]

/** All of a browser's state, as the model reads it. */
export function describeState(value: BrowserValue): string {
  if (!value.open) return 'The browser is closed.'
  const hidden = value.tabCount - value.tabs.length
  return [
    activeLine(value),
    counted(value.tabCount),
    ...value.tabs.map((tab) => `- ${named(tab)}`),
    ...(hidden > 0 ? [`- and ${hidden} more`] : []),
  ].join('\n')
}

/** What changed in it. */
export function describeChange(delta: BrowserDelta, value: BrowserValue): string {
  if (delta.open === false) return 'The browser was closed.'
  const isOther = 'activeUrl' in delta || 'activeTitle' in delta
  return [
    ...(delta.open === true ? ['The browser was opened.'] : []),
    ...(isOther ? [activeLine(value)] : []),
    ...(delta.opened ?? []).map((tab) => `Opened: ${named(tab)}`),
    ...(delta.closed ?? []).map((tab) => `Closed: ${named(tab)}`),
    ...(delta.navigated ?? []).filter(({ url }) => !isOther || url !== value.activeUrl).map((tab) => `Now shows: ${named(tab)}`),
    ...(delta.tabCount === undefined ? [] : [counted(delta.tabCount)]),
  ].join('\n')
}

function activeLine({ activeUrl, activeTitle }: BrowserValue): string {
  return activeUrl === null ? 'No tab is active.' : `Active tab: ${named({ url: activeUrl, title: activeTitle ?? '' })}`
}

function named({ url, title }: Tab): string {
  return title === '' ? url : `${title} (${url})`
}

function counted(tabs: number): string {
  return tabs === 1 ? '1 tab is open.' : `${tabs} tabs are open.`
}
