import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** What can happen to a connection. */
type Fate = 'whole' | 'refused' | 'answer lost' | 'cut' | 'half-closed' | 'late'

/** A TCP proxy that harms connections as `chance` decides. `cuts` counts those it harmed. */
export async function harmfulProxy(target: () => { host: string; port: number }, chance: () => number) {
  const counts: Record<Fate, number> = { whole: 0, refused: 0, 'answer lost': 0, cut: 0, 'half-closed': 0, late: 0 }
  const open = new Set<Socket>()
  let harm = true
  const server = createServer((client) => {
    const fate = harm ? fateOf(chance()) : 'whole'
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
    let left = fate === 'answer lost' ? 0 : Math.floor(chance() * (fate === 'late' ? 40_000 : 6_000))
    upstream.on('data', (data: Buffer) => {
      left -= data.length
      if (left >= 0 || !harm || fate === 'whole') {
        if (!client.write(data)) {
          upstream.pause()
          client.once('drain', () => upstream.resume())
        }
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
    harmed: () => counts.refused + counts['answer lost'] + counts.cut + counts['half-closed'] + counts.late,
    /** From here on every connection is left alone. */
    heal: () => (harm = false),
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function fateOf(draw: number): Fate {
  if (draw < 0.1) return 'refused'
  if (draw < 0.3) return 'answer lost'
  if (draw < 0.5) return 'cut'
  if (draw < 0.65) return 'half-closed'
  // Kept connections must not be spared for good.
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
