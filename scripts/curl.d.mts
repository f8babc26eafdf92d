/** Where curl is, or why there is none. With `install`, a missing one is installed where that is allowed. */
export function findCurl(options?: { install?: boolean }): Promise<{ path: string } | { missing: string }>
