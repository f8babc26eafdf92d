/** Where Chromium is, or why there is none. With `install`, a missing one is installed where that is allowed. */
export function findChromium(options?: { install?: boolean }): Promise<{ path: string } | { missing: string }>
