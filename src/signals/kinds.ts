/** What a signal is about. The tag that the model sees is its `tagName`. */
export type SignalType = 'user' | 'state' | 'reactive' | 'notification'

/** What a sender may write: the types, and two older names that stand for a type and a tag. */
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

/** The type and default tag that a written type stands for; undefined when there is no such type. */
export function kindOf(type: unknown): SignalKind | undefined {
  return typeof type === 'string' ? kinds.get(type) : undefined
}

/** True for what may stand as a tag or an attribute name without any escaping. */
export function isXMLName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)
}
