import type { MessageRow } from '../../message/row.ts'
import { lanePositionOf } from '../../signals/state.ts'

interface Told {
  version: number
  isSnapshot: boolean
  /** None for a repetition, which is no message. */
  id?: string
}

/** The ids of the messages that say how lanes are now: of each, the newest snapshot and every change after it. */
export function presentLanes(rows: readonly MessageRow[]): ReadonlySet<string> {
  const lanes = new Map<string, Told[]>()
  for (const row of rows) {
    const [lane, told] = toldIn(row) ?? []
    if (lane === undefined || !told) continue
    const before = lanes.get(lane)
    if (before) before.push(told)
    else lanes.set(lane, [told])
  }
  const present = new Set<string>()
  for (const told of lanes.values()) {
    const since = told.reduce((newest, { version, isSnapshot }) => (isSnapshot && version > newest ? version : newest), 0)
    for (const { id, version } of told) if (id !== undefined && version >= since) present.add(id)
  }
  return present
}

function toldIn(row: MessageRow): [lane: string, told: Told] | undefined {
  if (row.role === 'context') {
    const { lane, version } = row.content.metadata ?? {}
    // A repetition has the last snapshot and what changed since: whatever it has is said by it.
    return typeof lane === 'string' && typeof version === 'number' ? [lane, { version: version + 0.5, isSnapshot: true }] : undefined
  }
  const place = lanePositionOf(row)
  return place && [place.id, { version: place.version, isSnapshot: place.mode === 'snapshot', id: row.messageId }]
}
