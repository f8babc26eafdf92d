import { createHash } from 'node:crypto'
import { checkNames } from '../../base/arguments.ts'
import type { ComputeStateSignalArgs, Processor, StateSignalResult } from '../processor.ts'
import { checkCount, checkFunction } from './option-checks.ts'

/** A tab of a browser. */
export interface BrowserTab {
  /** Identifies a tab across changes of its page. Without it, URL and title identify the tab. */
  id?: string
  url: string
  title?: string
  active?: boolean
}

/** The state of a browser as `read` returns it. */
export interface BrowserState {
  /** Defaults to true. */
  open?: boolean
  tabs: readonly BrowserTab[]
}

/** The options of `browserLane()`. */
export interface BrowserLaneOptions {
  /** Reads the current state of the browser; undefined for no state. */
  read(): BrowserState | undefined | Promise<BrowserState | undefined>
  /** After this many deltas a new snapshot follows. Defaults to 16. */
  maxDeltas?: number
  /** The limit of listed tabs; the active one is always listed. Defaults to 50. */
  maxTabs?: number
}

/** The `value` of the lane. */
export interface BrowserValue {
  open: boolean
  activeUrl: string | null
  activeTitle: string | null
  tabCount: number
  tabs: Array<{ id?: string; url: string; title: string }>
}

/** The `delta` of the lane. Absent fields are unchanged. */
export interface BrowserDelta {
  open?: boolean
  activeUrl?: string | null
  activeTitle?: string | null
  tabCount?: number
  opened?: BrowserValue['tabs']
  closed?: BrowserValue['tabs']
  navigated?: BrowserValue['tabs']
}

/**
 * Shows the state of a browser to the model, in the lane `browser`: first a snapshot, then deltas. It reads the browser once before every
 * model call, and adds no signal where nothing has changed. When the window no longer has the last snapshot, it sends a new one.
 *
 * @example
 * browserLane({
 *   read: async () => ({
 *     tabs: await Promise.all(context.pages().map(async (page) => {
 *       return { url: page.url(), title: await page.title(), active: page === current }
 *     })),
 *   }),
 * })
 */
export function browserLane(options: BrowserLaneOptions): Processor<'browser-state'> {
  checkNames('browserLane()', options, ['read', 'maxDeltas', 'maxTabs'])
  const { read, maxDeltas = 16, maxTabs = 50 } = options
  checkFunction('browserLane()', 'read', read)
  checkCount('browserLane()', 'maxDeltas', maxDeltas, 1)
  checkCount('browserLane()', 'maxTabs', maxTabs, 1)
  return {
    id: 'browser-state',
    stateId: 'browser',
    maxDeltas,
    async computeStateSignal(args): Promise<StateSignalResult | undefined> {
      const state = await read()
      if (!state) return undefined
      const value = valueOf(state, maxTabs)
      const cacheKey = stateKey(value)
      const previous = lastValue(args)
      if (!previous || !args.contextWindow.hasSnapshot) {
        if (previous && stateKey(previous) === cacheKey) return undefined
        return { mode: 'snapshot', cacheKey, contents: describeState(value), value }
      }
      const delta = changesBetween(previous, value)
      if (Object.keys(delta).length === 0) return undefined
      return { mode: 'delta', cacheKey, contents: describeChange(delta, value), value, delta }
    },
  }
}

/** The last state that the model has; undefined when the window lacks the snapshot that its deltas apply to. */
function lastValue({ activeStateSignals, lastSnapshot }: ComputeStateSignalArgs): BrowserValue | undefined {
  const inWindow = activeStateSignals.some(({ id }) => id === lastSnapshot?.id)
  const value = inWindow ? activeStateSignals.at(-1)?.metadata?.value : undefined
  return isValue(value) ? value : undefined
}

function isValue(value: unknown): value is BrowserValue {
  return typeof value === 'object' && value !== null && 'tabs' in value && Array.isArray(value.tabs)
}

const maxUrl = 500
const maxTitle = 200

function valueOf({ open = true, tabs }: BrowserState, maxTabs: number): BrowserValue {
  const active = tabs.find((tab) => tab.active)
  const listed = tabs.slice(0, maxTabs)
  if (active && !listed.includes(active)) listed.splice(-1, 1, active)
  return {
    open,
    activeUrl: active ? shortened(active.url, maxUrl) : null,
    activeTitle: active ? oneLine(active.title) : null,
    tabCount: tabs.length,
    tabs: listed.map(({ id, url, title }) => ({ ...(id === undefined ? {} : { id }), url: shortened(url, maxUrl), title: oneLine(title) })),
  }
}

/** A page chooses its title, and must not be able to add lines to the text for the model. */
function oneLine(title = ''): string {
  return shortened(title.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim(), maxTitle)
}

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

/** Equal for equal states, in every process. */
function stateKey({ open, activeUrl, activeTitle, tabCount, tabs }: BrowserValue): string {
  const json = JSON.stringify([open, activeUrl, activeTitle, tabCount, tabs.map(({ id, url, title }) => [id ?? null, url, title])])
  return `browser:${createHash('sha256').update(json).digest('hex').slice(0, 32)}`
}

function changesBetween(before: BrowserValue, now: BrowserValue): BrowserDelta {
  const { opened, closed, navigated } = tabChanges(before.tabs, now.tabs)
  return {
    ...(before.open === now.open ? {} : { open: now.open }),
    ...(before.activeUrl === now.activeUrl ? {} : { activeUrl: now.activeUrl }),
    ...(before.activeTitle === now.activeTitle ? {} : { activeTitle: now.activeTitle }),
    ...(before.tabCount === now.tabCount ? {} : { tabCount: now.tabCount }),
    ...(opened.length === 0 ? {} : { opened }),
    ...(closed.length === 0 ? {} : { closed }),
    ...(navigated.length === 0 ? {} : { navigated }),
  }
}

type Tabs = BrowserValue['tabs']

/** Several tabs may show the same page: the tabs of a page are counted. */
function tabChanges(before: Tabs, now: Tabs): { opened: Tabs; closed: Tabs; navigated: Tabs } {
  const left = new Map<string, Tabs>()
  for (const tab of before) left.set(tabKey(tab), [...(left.get(tabKey(tab)) ?? []), tab])
  const opened: Tabs = []
  const navigated: Tabs = []
  for (const tab of now) {
    const was = left.get(tabKey(tab))?.shift()
    if (!was) opened.push(tab)
    else if (was.url !== tab.url || was.title !== tab.title) navigated.push(tab)
  }
  return { opened, closed: [...left.values()].flat(), navigated }
}

function tabKey({ id, url, title }: Tabs[number]): string {
  return id === undefined ? `page ${url}\n${title}` : `tab ${id}`
}

/** The text of a snapshot for the model. */
function describeState(value: BrowserValue): string {
  if (!value.open) return 'The browser is closed.'
  const hidden = value.tabCount - value.tabs.length
  return [
    activeLine(value),
    tabCount(value.tabCount),
    ...value.tabs.map((tab) => `- ${tabLabel(tab)}`),
    ...(hidden > 0 ? [`- and ${hidden} more`] : []),
  ].join('\n')
}

/** The text of a delta for the model. */
function describeChange(delta: BrowserDelta, value: BrowserValue): string {
  if (delta.open === false) return 'The browser was closed.'
  const activeChanged = 'activeUrl' in delta || 'activeTitle' in delta
  return [
    ...(delta.open === true ? ['The browser was opened.'] : []),
    ...(activeChanged ? [activeLine(value)] : []),
    ...(delta.opened ?? []).map((tab) => `Opened: ${tabLabel(tab)}`),
    ...(delta.closed ?? []).map((tab) => `Closed: ${tabLabel(tab)}`),
    ...(delta.navigated ?? []).filter(({ url }) => !activeChanged || url !== value.activeUrl).map((tab) => `Now shows: ${tabLabel(tab)}`),
    ...(delta.tabCount === undefined ? [] : [tabCount(delta.tabCount)]),
  ].join('\n')
}

function activeLine({ activeUrl, activeTitle }: BrowserValue): string {
  return activeUrl === null ? 'No tab is active.' : `Active tab: ${tabLabel({ url: activeUrl, title: activeTitle ?? '' })}`
}

function tabLabel({ url, title }: Tabs[number]): string {
  return title === '' ? url : `${title} (${url})`
}

function tabCount(tabs: number): string {
  return tabs === 1 ? '1 tab is open.' : `${tabs} tabs are open.`
}
