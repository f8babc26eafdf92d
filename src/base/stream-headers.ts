/** The cursor of the place where a stream begins. */
export const cursorHeader = 'heed-cursor'

/** After how many milliseconds of silence the server says that it is still there. */
export const heartbeatHeader = 'heed-heartbeat-ms'
