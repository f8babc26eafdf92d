import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react'
import type { HeedClient } from 'heed/client'
import { useAwake } from './awake.ts'

/** How often lists are read again while the stream of changes is not open. */
const pollMs = 3_000

/** Called with the id of a thread that changed; undefined: any of them may have. */
type OnChange = (threadId: string | undefined) => void

interface Live {
  isOpen: boolean
  listeners: Set<OnChange>
}

const LiveContext = createContext<Live>({ isOpen: false, listeners: new Set() })

/** What the page with the stream tells the others: whether it is open, and which thread changed (null: any of them may have). */
type Told = { isOpen: boolean } | { threadId: string | null } | 'is it open?'

/**
 * One stream of the changes of all threads, for the lists of all pages of this browser that are visible: the page that has the lock reads
 * it, and tells the others. `identity`: who reads it; pages of others have a stream of their own.
 */
export function LiveProvider({ client, identity, children }: { client: HeedClient; identity: string; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const [listeners] = useState(() => new Set<OnChange>())
  const isAwake = useAwake()
  useEffect(() => {
    if (!isAwake) return
    const stop = new AbortController()
    const channel = new BroadcastChannel(`heed-studio ${identity}`)
    const post = (told: Told) => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel reaches pages of this origin alone
      channel.postMessage(told)
    }
    const tell = (threadId?: string) => {
      for (const listener of listeners) listener(threadId)
    }
    let hasStream = false
    const show = (isOpenNow: boolean) => {
      if (stop.signal.aborted) return
      hasStream = isOpenNow
      setOpen(isOpenNow)
      post({ isOpen: isOpenNow })
      // Nothing is reported of the time without a connection.
      if (isOpenNow) tell()
    }
    channel.addEventListener('message', ({ data }: MessageEvent<Told>) => {
      if (data === 'is it open?') {
        if (hasStream) post({ isOpen: true })
      } else if ('isOpen' in data) {
        setOpen(data.isOpen)
        if (data.isOpen) tell()
      } else tell(data.threadId ?? undefined)
    })
    post('is it open?')
    const listen = async () => {
      const subscription = await client.withSignal(stop.signal).subscribeToThreads()
      for await (const change of subscription.changes({ onOpen: () => show(true), onLost: () => show(false) })) {
        const threadId = 'more' in change ? undefined : change.id
        post({ threadId: threadId ?? null })
        tell(threadId)
      }
    }
    // Without the stream, lists are read from time to time: for principals of several resources, and on servers without the route.
    inTurn(`heed-studio ${identity}`, stop.signal, listen).catch(() => show(false))
    return () => {
      stop.abort()
      channel.close()
    }
  }, [client, identity, listeners, isAwake])
  const live = useMemo(() => ({ isOpen, listeners }), [isOpen, listeners])
  return <LiveContext value={live}>{children}</LiveContext>
}

/** Does the work when no other page does it. Where browsers have no locks (pages without https from another machine), at once. */
async function inTurn(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  if ('locks' in navigator) await navigator.locks.request(name, { signal }, work)
  else await work()
}

/**
 * When something has to be read again that the changes of threads, or of one thread, announce: as options of `useQuery`. `everyMs`: for
 * what nothing announces, such as a notification that is pending or a process that starts.
 */
export function useLive(threadId?: string, everyMs?: number): { version: number; everyMs?: number } {
  const { isOpen, listeners } = useContext(LiveContext)
  const [version, setVersion] = useState(0)
  useEffect(() => {
    const onChange: OnChange = (changed) => {
      if (threadId === undefined || changed === undefined || changed === threadId) setVersion((before) => before + 1)
    }
    listeners.add(onChange)
    return () => void listeners.delete(onChange)
  }, [listeners, threadId])
  const interval = isOpen ? everyMs : Math.min(pollMs, everyMs ?? pollMs)
  return { version, ...(interval === undefined ? {} : { everyMs: interval }) }
}
