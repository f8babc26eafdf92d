import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Watches how long the event loop was held up. Answers the longest time, in milliseconds. */
export function watchStalls() {
  const monitor = monitorEventLoopDelay({ resolution: 1 })
  monitor.enable()
  return () => {
    monitor.disable()
    return monitor.max / 1e6
  }
}
