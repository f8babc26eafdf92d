/** A node of the tree of paths: its children by segment, its child for any segment, and the targets of its path by method. */
interface Node<Target> {
  children: Map<string, Node<Target>>
  param?: { name: string; node: Node<Target> }
  targets: Map<string, Target>
}

export interface RouteMatch<Target> {
  /** By method. */
  targets: ReadonlyMap<string, Target>
  params: Record<string, string>
}

/** Finds the targets of a path. A literal segment is preferred to a `:param`. */
export class RouteTable<Target> {
  readonly #root: Node<Target> = { children: new Map(), targets: new Map() }

  add(method: string, path: string, target: Target): void {
    let node = this.#root
    for (const segment of path.slice(1).split('/')) {
      if (segment.startsWith(':')) {
        const name = segment.slice(1)
        node.param ??= { name, node: { children: new Map(), targets: new Map() } }
        if (node.param.name !== name) throw new Error(`Two names for one parameter of ${path}: ${node.param.name} and ${name}.`)
        node = node.param.node
      } else {
        const child = node.children.get(segment) ?? { children: new Map(), targets: new Map() }
        node.children.set(segment, child)
        node = child
      }
    }
    node.targets.set(method, target)
  }

  find(path: string): RouteMatch<Target> | undefined {
    const params: Record<string, string> = {}
    const node = descend(this.#root, path.slice(1).split('/'), 0, params)
    return node && { targets: node.targets, params }
  }
}

function descend<Target>(
  node: Node<Target>, segments: readonly string[], index: number, params: Record<string, string>,
): Node<Target> | undefined {
  const segment = segments[index]
  if (segment === undefined) return node.targets.size > 0 ? node : undefined
  const child = node.children.get(segment)
  const match = child && descend(child, segments, index + 1, params)
  if (match || !node.param || segment === '') return match
  const below = descend(node.param.node, segments, index + 1, params)
  if (below) params[node.param.name] = decode(segment)
  return below
}

/** Percent-decodes a segment; one that is not valid percent-encoding stays as it is. */
function decode(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
