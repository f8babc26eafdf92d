import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent, type ReactNode } from 'react'

/** The path below which Studio is mounted, such as `/studio`. */
const base = document.documentElement.dataset.base ?? ''

interface Place {
  /** The decoded segments of the path below Studio: `['threads', 'release-2.1.0']`. */
  segments: readonly string[]
  query: URLSearchParams
}

const listeners = new Set<() => void>()
let current = readPlace()

function readPlace(): Place {
  const { pathname, search } = window.location
  const below = pathname.startsWith(base) ? pathname.slice(base.length) : pathname
  return {
    segments: below
      .split('/')
      .filter((segment) => segment !== '')
      .map(decode),
    query: new URLSearchParams(search),
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function notify(): void {
  current = readPlace()
  for (const listener of listeners) listener()
}

window.addEventListener('popstate', notify)

/** The address of a view. Segments are encoded: ids may contain any character. */
export function hrefOf(segments: readonly string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
  const search = new URLSearchParams(given).toString()
  return `${base}/${segments.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

export function navigate(href: string, { replace = false }: { replace?: boolean } = {}): void {
  if (replace) window.history.replaceState(null, '', href)
  else window.history.pushState(null, '', href)
  notify()
}

/** Changes parameters of the present address; an empty value removes one. */
export function setQuery(change: Record<string, string | undefined>, options: { replace?: boolean } = { replace: true }): void {
  const query = Object.fromEntries(current.query)
  navigate(hrefOf(current.segments, { ...query, ...change }), options)
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, () => current)
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & {
  to: readonly string[]
  query?: Record<string, string | undefined>
  children: ReactNode
}

/** A link to a view, which opens without a load of the page. */
export function Link({ to, query, onClick, ...rest }: LinkProps) {
  const href = hrefOf(to, query)
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(href)
  }
  return <a {...rest} href={href} onClick={follow} />
}
