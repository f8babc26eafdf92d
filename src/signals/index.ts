export type { SignalInputType, SignalKind, SignalType } from './kinds.ts'
export { SIGNAL_TYPES } from './kinds.ts'
export type {
  CreatedAgentSignal, FileBytes, FileInput, MessageInput, MessageInputObject, Signal, SignalAttributes, SignalContents,
  SignalFilePart, SignalImagePart, SignalInput, SignalTextPart, StoredAttributes, StoredContents, StoredFilePart, StoredPart,
} from './signal.ts'
export { isPlain } from './signal.ts'

// Accepting: everything wrong with an input is found here.
export type { NormaliseContext } from './normalise.ts'
export { messageInputToSignal, normaliseSignal } from './normalise.ts'
export { mergeAttributes, normaliseAttributes } from './attributes.ts'
export { MAX_SIGNAL_BYTES } from './contents.ts'
export { needsGuard, RESERVED_TAGS } from './forgery.ts'

// What a signal becomes: a model's message, a row, a chunk, a receipt's signal.
export type { UserModelMessage } from './render.ts'
export { renderSignal } from './render.ts'
export type { SignalRecord, StoredMessage } from './row.ts'
export { isUserAuthored, rowToSignal, signalToMessage, signalToRow } from './row.ts'
export type { SignalDataChunk, SignalDataPart } from './echo.ts'
export { signalToDataChunk, signalToDataPart } from './echo.ts'
export { createdSignal } from './created.ts'
