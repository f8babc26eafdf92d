import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** How long a piece of an answer is held back at most. */
const mostDelayMs = 30

/** What can happen to a connection. */
export type Fate = 'whole' | 'refused' | 'answer lost' | 'cut' | 'half-closed' | 'mute' | 'delayed' | 'late'

/** A TCP proxy that harms connections as `chance` decides, or as `fates` say one after the other while there are any. */
export async function harmfulProxy(target: () => { host: string; port: number }, chance: () => number, fates: Fate[] = []) {
  const counts: Record<Fate, number> = { whole: 0, refused: 0, 'answer lost': 0, cut: 0, 'half-closed': 0, mute: 0, delayed: 0, late: 0 }
  const open = new Set<Socket>()
  const timers = new Set<ReturnType<typeof setTimeout>>()
  let harm = true
  const server = createServer((client) => {
    const planned = fates.shift()
    const fate = planned ?? (harm ? fateOf(chance()) : 'whole')
    counts[fate]++
    open.add(client)
    client.on('close', () => open.delete(client))
    client.on('error', () => {})
    if (fate === 'refused') {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(target())
    open.add(upstream)
    upstream.on('close', () => open.delete(upstream))
    upstream.on('error', () => client.destroy())
    client.on('close', () => upstream.destroy())
    client.pipe(upstream)
    // How much of the answer gets through before it happens.
    let left = planned || fate === 'answer lost' || (fate === 'mute' && chance() < 0.5) ? 0 : Math.floor(chance() * (fate === 'late' || fate === 'delayed' ? 40_000 : 6_000))
    let muted = false
    upstream.on('data', (data: Buffer) => {
      left -= data.length
      // Kept connections must not be spared permanently.
      if (fate === 'delayed' && (left >= 0 || !harm)) {
        upstream.pause()
        const timer = setTimeout(() => {
          timers.delete(timer)
          client.write(data)
          upstream.resume()
        }, harm ? chance() * mostDelayMs : 0)
        timers.add(timer)
        return
      }
      if (!muted && (left >= 0 || fate === 'whole' || (!harm && !planned))) {
        if (!client.write(data)) {
          upstream.pause()
          client.once('drain', () => upstream.resume())
        }
        return
      }
      // Nothing comes any more, and the connection stays open.
      if (fate === 'mute') {
        muted = true
        return
      }
      if (fate === 'half-closed') {
        client.end(data.subarray(0, Math.max(0, data.length + left)))
        upstream.destroy()
      } else {
        client.resetAndDestroy()
        upstream.destroy()
      }
    })
    upstream.on('end', () => client.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    counts,
    harmed: () => counts.refused + counts['answer lost'] + counts.cut + counts['half-closed'] + counts.mute + counts.delayed + counts.late,
    /** From here on every connection is left alone. */
    heal: () => (harm = false),
    /** Ends every connection there is now, as a network does that goes away. */
    cut() {
      for (const socket of open) socket.resetAndDestroy()
    },
    async close() {
      for (const timer of timers) clearTimeout(timer)
      for (const socket of open) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function fateOf(draw: number): Fate {
  if (draw < 0.1) return 'refused'
  if (draw < 0.3) return 'answer lost'
  if (draw < 0.5) return 'cut'
  if (draw < 0.6) return 'half-closed'
  if (draw < 0.7) return 'mute'
  if (draw < 0.8) return 'delayed'
  return 'late'
}

/** The same numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
