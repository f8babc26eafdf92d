const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const hostForm = new RegExp(`^(\\[[0-9a-f:.]{2,45}\\]|${label}(?:\\.${label})*\\.?)(?::\\d{1,5})?$`, 'i')
const loopbackForm = new RegExp(`^(?:(?:${label}\\.)*localhost|\\[?::1\\]?|127(?:\\.(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)){3})$`)

/**
 * The host that a `Host` header names: a name and an optional port, and nothing that could be parsed as another part of a URL. Any
 * other header gives an empty name and a reserved origin.
 */
export function parseHost(header: string | null): Host {
  if (header !== lastHeader) {
    lastHost = parse(header)
    lastHeader = header
  }
  return lastHost
}

export interface Host {
  hostname: string
  origin: string
}

const noHost: Host = { hostname: '', origin: 'http://unnamed.invalid' }

// Most requests have the same header as the one before.
let lastHeader: string | null = null
let lastHost = noHost

function parse(header: string | null): Host {
  const hostname = hostForm.exec(header ?? '')?.[1]?.toLowerCase()
  const origin = `http://${header}`
  return hostname !== undefined && URL.canParse(origin) ? { hostname, origin } : noHost
}

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  return loopbackForm.test(hostname)
}
