/** The four types of a signal. The model sees its `tagName`. */
export type SignalType = 'user' | 'state' | 'reactive' | 'notification'

/** The types that a sender may write: also two older names, each of which stands for a type and a tag. */
export type SignalInputType = SignalType | 'user-message' | 'system-reminder'

export interface SignalKind {
  type: SignalType
  tagName: string
}

export const SIGNAL_TYPES: readonly SignalType[] = ['user', 'state', 'reactive', 'notification']

const kinds: ReadonlyMap<string, SignalKind> = new Map<SignalInputType, SignalKind>([
  ['user', { type: 'user', tagName: 'user' }],
  ['state', { type: 'state', tagName: 'state' }],
  ['reactive', { type: 'reactive', tagName: 'system-reminder' }],
  ['notification', { type: 'notification', tagName: 'notification' }],
  ['user-message', { type: 'user', tagName: 'user' }],
  ['system-reminder', { type: 'reactive', tagName: 'system-reminder' }],
])

/** The type and the default tag of a written type; undefined for an unknown one. */
export function kindOf(type: unknown): SignalKind | undefined {
  return typeof type === 'string' ? kinds.get(type) : undefined
}
