import type { Heed } from '../heed/heed.ts'
import type { EventStreams } from './sse/event-stream.ts'

/** Counters for operators, in the text format of Prometheus. */
export class Metrics {
  readonly #events: EventStreams
  readonly #requests = new Map<string, number>()

  constructor(events: EventStreams) {
    this.#events = events
  }

  count(method: string, status: number): void {
    const labels = `method="${methods.has(method) ? method : 'other'}",status="${status}"`
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1)
  }

  text(heed: Heed): string {
    const running = heed.sites.all().reduce((sum, { threads }) => sum + threads.hosts().length, 0)
    return [
      '# TYPE heed_http_requests_total counter',
      ...[...this.#requests].map(([labels, count]) => `heed_http_requests_total{${labels}} ${count}`),
      '# TYPE heed_event_streams gauge',
      `heed_event_streams ${this.#events.size}`,
      '# TYPE heed_threads_running gauge',
      `heed_threads_running ${running}`,
      '# TYPE process_resident_memory_bytes gauge',
      `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
      '',
    ].join('\n')
  }
}

/** The only methods that become labels: a client's invented method must not grow the map. */
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'])
