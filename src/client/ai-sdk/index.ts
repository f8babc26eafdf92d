export { answersWhatWaits, type ChatMessage } from './conversion.ts'
export { HeedChatTransport, type HeedChatTransportOptions } from './transport.ts'
export { uiChunks, type HeedDataTypes, type UIChunk, type WaitingForData } from './conversion.ts'
