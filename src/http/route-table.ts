/** A place in the table of paths: what follows by name, what follows whatever its name, and who answers here. */
interface Place<Target> {
  named: Map<string, Place<Target>>
  any?: { name: string; place: Place<Target> }
  targets: Map<string, Target>
}

export interface Found<Target> {
  /** By method. */
  targets: ReadonlyMap<string, Target>
  params: Record<string, string>
}

/** Which path is whose. A name goes before `:anything`. */
export class RouteTable<Target> {
  readonly #root: Place<Target> = { named: new Map(), targets: new Map() }

  add(method: string, path: string, target: Target): void {
    let place = this.#root
    for (const part of path.slice(1).split('/')) {
      if (part.startsWith(':')) {
        place.any ??= { name: part.slice(1), place: { named: new Map(), targets: new Map() } }
        if (place.any.name !== part.slice(1)) throw new Error(`Two names for one place of ${path}: ${place.any.name} and ${part.slice(1)}.`)
        place = place.any.place
      } else {
        const next = place.named.get(part) ?? { named: new Map(), targets: new Map() }
        place.named.set(part, next)
        place = next
      }
    }
    place.targets.set(method, target)
  }

  find(path: string): Found<Target> | undefined {
    const params: Record<string, string> = {}
    const place = descend(this.#root, path.slice(1).split('/'), 0, params)
    return place && { targets: place.targets, params }
  }
}

function descend<Target>(place: Place<Target>, parts: readonly string[], at: number, params: Record<string, string>): Place<Target> | undefined {
  const part = parts[at]
  if (part === undefined) return place.targets.size > 0 ? place : undefined
  const named = place.named.get(part)
  const found = named && descend(named, parts, at + 1, params)
  if (found || !place.any || part === '') return found
  const below = descend(place.any.place, parts, at + 1, params)
  if (below) params[place.any.name] = decoded(part)
  return below
}

/** As it was meant; what is no encoding is meant as it is. */
function decoded(part: string): string {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
