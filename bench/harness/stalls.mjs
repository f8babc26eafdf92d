import { openSync, readSync, closeSync } from 'node:fs'

/**
 * Watches how long the event loop was held up. Answers the longest time in milliseconds: `wall`, and `own`, which leaves out the time in which this thread was ready to go on and
 * the machine ran something else. Where the kernel doesn't tell that, both are the same.
 */
export function watchStalls() {
  const waiting = openWaiting()
  let last = performance.now()
  let lastWaited = waiting.ms()
  const longest = { own: 0, wall: 0 }
  let timer
  const look = () => {
    const now = performance.now()
    const waited = waiting.ms()
    longest.wall = Math.max(longest.wall, now - last)
    longest.own = Math.max(longest.own, now - last - (waited - lastWaited))
    last = now
    lastWaited = waited
    timer = setTimeout(look, 1)
  }
  timer = setTimeout(look, 1)
  return () => {
    clearTimeout(timer)
    look()
    clearTimeout(timer)
    waiting.close()
    return longest
  }
}

/** For how long this thread has waited for a processor, ever. */
function openWaiting() {
  let file
  try {
    file = openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return { ms: () => 0, close() {} }
  }
  const bytes = Buffer.alloc(128)
  return {
    ms: () => Number(bytes.toString('latin1', 0, readSync(file, bytes, 0, bytes.length, 0)).split(' ')[1]) / 1e6,
    close: () => closeSync(file),
  }
}
