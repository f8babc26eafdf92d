export { answersWhatWaits, type ChatMessage } from './chat-message.ts'
export { HeedChatTransport, type HeedChatTransportOptions } from './transport.ts'
export type { HeedDataTypes, WaitingForData } from './data-types.ts'
export { uiChunks, type UIChunk } from './ui-chunks.ts'
