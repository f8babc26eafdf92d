import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react'
import type { HeedClient } from 'heed/client'

/** How often lists are read again while the stream of changes is not open. */
const pollMs = 3_000

/** Called with the id of a thread that changed; undefined: any of them may have. */
type OnChange = (threadId: string | undefined) => void

interface Live {
  isOpen: boolean
  listeners: Set<OnChange>
}

const LiveContext = createContext<Live>({ isOpen: false, listeners: new Set() })

/** One stream of the changes of all threads, for the lists of the page. */
export function LiveProvider({ client, children }: { client: HeedClient; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const [listeners] = useState(() => new Set<OnChange>())
  useEffect(() => {
    const stop = new AbortController()
    const tell = (threadId?: string) => {
      for (const listener of listeners) listener(threadId)
    }
    // Nothing is reported of the time without a connection.
    const onOpen = () => {
      setOpen(true)
      tell()
    }
    const onLost = () => !stop.signal.aborted && setOpen(false)
    const listen = async () => {
      const subscription = await client.withSignal(stop.signal).subscribeToThreads()
      for await (const change of subscription.changes({ onOpen, onLost })) tell('more' in change ? undefined : change.id)
    }
    // Without the stream, lists are read from time to time: for principals of several resources, and on servers without the route.
    listen().catch(onLost)
    return () => stop.abort()
  }, [client, listeners])
  const live = useMemo(() => ({ isOpen, listeners }), [isOpen, listeners])
  return <LiveContext value={live}>{children}</LiveContext>
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
