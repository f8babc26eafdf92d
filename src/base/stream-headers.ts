/** The cursor at which a stream begins. */
export const cursorHeader = 'heed-cursor'

/** The milliseconds without a chunk after which the server sends a heartbeat. */
export const heartbeatHeader = 'heed-heartbeat-ms'
