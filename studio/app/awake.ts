import { useSyncExternalStore } from 'react'

/** How long a page that is not visible keeps its streams. A browser has six connections to a server for all of its pages. */
const lingerMs = 5_000

const listeners = new Set<() => void>()
let isAwake = true
let timer: ReturnType<typeof setTimeout> | undefined

function change(next: boolean): void {
  if (isAwake === next) return
  isAwake = next
  for (const listener of listeners) listener()
}

function onVisibility(): void {
  clearTimeout(timer)
  if (document.visibilityState === 'visible') change(true)
  else timer = setTimeout(() => change(false), lingerMs)
}

document.addEventListener('visibilitychange', onVisibility)
onVisibility()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Whether the page is visible, or was a moment ago. One that is not has no streams: it shows the present again when it is visible. */
export function useAwake(): boolean {
  return useSyncExternalStore(subscribe, () => isAwake)
}
