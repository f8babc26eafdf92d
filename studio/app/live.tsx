import { createContext, useContext, useEffect, useState, type ReactNode } from 'react'
import type { HeedClient } from 'heed/client'

/** How often lists are read again while the stream of changes is not open. */
const pollMs = 3_000

interface Live {
  isOpen: boolean
  /** Grows with each change of the list of threads. */
  changes: number
}

const LiveContext = createContext<Live>({ isOpen: false, changes: 0 })

/** One stream of the changes of all threads, for the lists of the page. */
export function LiveProvider({ client, children }: { client: HeedClient; children: ReactNode }) {
  const [live, setLive] = useState<Live>({ isOpen: false, changes: 0 })
  useEffect(() => {
    const stop = new AbortController()
    const seen = () => setLive(({ changes }) => ({ isOpen: true, changes: changes + 1 }))
    const lost = () => !stop.signal.aborted && setLive(({ changes }) => ({ isOpen: false, changes }))
    const listen = async () => {
      const subscription = await client.withSignal(stop.signal).subscribeToThreads()
      for await (const _ of subscription.changes({ onOpen: seen, onLost: lost })) seen()
    }
    // Without the stream, lists are read from time to time: for principals of several resources, and on servers without the route.
    listen().catch(lost)
    return () => stop.abort()
  }, [client])
  return <LiveContext value={live}>{children}</LiveContext>
}

/** When a list of threads has to be read again: as options of `useQuery`. */
export function useLive(): { version: number } | { everyMs: number } {
  const { isOpen, changes } = useContext(LiveContext)
  return isOpen ? { version: changes } : { everyMs: pollMs }
}
