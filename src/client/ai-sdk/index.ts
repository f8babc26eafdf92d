export { HeedChatTransport, type HeedChatTransportOptions } from './transport.ts'
export { uiChunks, type UIChunk } from './ui-chunks.ts'
