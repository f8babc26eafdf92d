import { checkNames } from '../../base/arguments.ts'
import { createHash } from 'node:crypto'
import { describeChange, describeState } from './browser-words.ts'
import { checkCount, checkFunction } from './option-kinds.ts'
import type { ComputeStateSignalArgs, Processor, StateSignalResult } from '../processor.ts'

export interface BrowserTab {
  /** Says that a tab is the same one though its page changed. Without it, a tab is its URL and title. */
  id?: string
  url: string
  title?: string
  active?: boolean
}

/** What a browser reports of itself. */
export interface BrowserState {
  /** Defaults to true. */
  open?: boolean
  tabs: readonly BrowserTab[]
}

export interface BrowserLaneOptions {
  /** Looks at the browser now. Nothing when there is nothing to tell. */
  read(): BrowserState | undefined | Promise<BrowserState | undefined>
  /** After so many changes the whole state is told again. Defaults to 16. */
  maxDeltas?: number
  /** How many tabs are told of, the active one always among them. Defaults to 50. */
  maxTabs?: number
}

/** The state as the lane keeps it, in `value`. */
export interface BrowserValue {
  open: boolean
  activeUrl: string | null
  activeTitle: string | null
  tabCount: number
  tabs: Array<{ id?: string; url: string; title: string }>
}

/** What changed, in `delta`. What is not there did not change. */
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
 * Keeps the model informed of a browser, in the lane `browser`: first all of it, afterwards what changed. Before every model call it is
 * looked at once; where nothing changed nothing is said. When the window has lost the last snapshot, there is a new one.
 *
 * @example
 * browserLane({
 *   read: async () => ({
 *     tabs: await Promise.all(context.pages().map(async (page) => ({ url: page.url(), title: await page.title(), active: page === current }))),
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
      const cacheKey = keyOf(value)
      const previous = lastValue(args)
      if (!previous || !args.contextWindow.hasSnapshot) {
        return previous && keyOf(previous) === cacheKey ? undefined : { mode: 'snapshot', cacheKey, contents: describeState(value), value }
      }
      const delta = changesBetween(previous, value)
      if (Object.keys(delta).length === 0) return undefined
      return { mode: 'delta', cacheKey, contents: describeChange(delta, value), value, delta }
    },
  }
}

/** What the model knows: nothing when the snapshot that the changes build on is out of its sight. */
function lastValue({ activeStateSignals, lastSnapshot }: ComputeStateSignalArgs): BrowserValue | undefined {
  const inSight = activeStateSignals.some(({ id }) => id === lastSnapshot?.id)
  const value = inSight ? activeStateSignals.at(-1)?.metadata?.value : undefined
  return isValue(value) ? value : undefined
}

function isValue(value: unknown): value is BrowserValue {
  return typeof value === 'object' && value !== null && 'tabs' in value && Array.isArray(value.tabs)
}

const maxUrl = 500
const maxTitle = 200

function valueOf({ open = true, tabs }: BrowserState, maxTabs: number): BrowserValue {
  const active = tabs.find((tab) => tab.active)
  const told = tabs.slice(0, maxTabs)
  if (active && !told.includes(active)) told.splice(-1, 1, active)
  return {
    open,
    activeUrl: active ? shortened(active.url, maxUrl) : null,
    activeTitle: active ? oneLine(active.title) : null,
    tabCount: tabs.length,
    tabs: told.map(({ id, url, title }) => ({ ...(id === undefined ? {} : { id }), url: shortened(url, maxUrl), title: oneLine(title) })),
  }
}

/** A page chooses its title: it must not be able to add lines to what the model reads. */
function oneLine(title = ''): string {
  return shortened(title.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim(), maxTitle)
}

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

/** The same for the same state, in every process. */
function keyOf({ open, activeUrl, activeTitle, tabCount, tabs }: BrowserValue): string {
  const written = JSON.stringify([open, activeUrl, activeTitle, tabCount, tabs.map(({ id, url, title }) => [id ?? null, url, title])])
  return `browser:${createHash('sha256').update(written).digest('hex').slice(0, 32)}`
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

/** Two tabs may show the same page: of each page, as many as there are more or fewer. */
function tabChanges(before: Tabs, now: Tabs): { opened: Tabs; closed: Tabs; navigated: Tabs } {
  const left = new Map<string, Tabs>()
  for (const tab of before) left.set(identity(tab), [...(left.get(identity(tab)) ?? []), tab])
  const opened: Tabs = []
  const navigated: Tabs = []
  for (const tab of now) {
    const was = left.get(identity(tab))?.shift()
    if (!was) opened.push(tab)
    else if (was.url !== tab.url || was.title !== tab.title) navigated.push(tab)
  }
  return { opened, closed: [...left.values()].flat(), navigated }
}

function identity({ id, url, title }: Tabs[number]): string {
  return id === undefined ? `page ${url}\n${title}` : `tab ${id}`
}
