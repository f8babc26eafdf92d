const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const form = new RegExp(`^(\\[[0-9a-f:.]{2,45}\\]|${label}(?:\\.${label})*\\.?)(?::\\d{1,5})?$`, 'i')
const ofThisMachine = new RegExp(`^(?:(?:${label}\\.)*localhost|\\[?::1\\]?|127(?:\\.(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)){3})$`)

/**
 * Who a `Host` header names: a name and perhaps a port, and nothing that would be read as another part of an address. Of anything else
 * nothing is taken: the name is empty, and addresses are told with one that nobody has.
 */
export function hostOf(header: string | null): Host {
  if (header !== last) {
    lastHost = readHost(header)
    last = header
  }
  return lastHost
}

export interface Host {
  hostname: string
  origin: string
}

const unnamed: Host = { hostname: '', origin: 'http://unnamed.invalid' }

// Most requests say the same as the one before.
let last: string | null = null
let lastHost = unnamed

function readHost(header: string | null): Host {
  const hostname = form.exec(header ?? '')?.[1]?.toLowerCase()
  const origin = `http://${header}`
  return hostname !== undefined && URL.canParse(origin) ? { hostname, origin } : unnamed
}

/** Names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  return ofThisMachine.test(hostname)
}
