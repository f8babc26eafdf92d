import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

type Value = string | number | boolean | Value[]
type AnyValue = { stringValue?: string; intValue?: string; doubleValue?: number; boolValue?: boolean; arrayValue?: { values: AnyValue[] } }
interface KeyValue {
  key: string
  value: AnyValue
}

interface WireSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: KeyValue[]
  events: Array<{ name: string; timeUnixNano: string; attributes: KeyValue[] }>
  links: Array<{ traceId: string; spanId: string; attributes: KeyValue[] }>
  status: { code?: number; message?: string }
}

/** A span as the collector got it. */
export interface CollectedSpan extends Omit<WireSpan, 'attributes' | 'events' | 'links'> {
  start: bigint
  end: bigint
  attributes: Record<string, Value>
  events: Array<{ name: string; time: bigint; attributes: Record<string, Value> }>
  links: Array<{ traceId: string; spanId: string; attributes: Record<string, Value> }>
}

interface CollectedPoint {
  metric: string
  unit: string
  value: number
  attributes: Record<string, Value>
}

/** A collector that takes OTLP as JSON over HTTP and refuses what is not well-formed. */
export async function collector() {
  const spans: CollectedSpan[] = []
  const points: CollectedPoint[] = []
  const server = createServer((request, response) => {
    textOf(request)
      .then((body) => {
        if (request.method !== 'POST' || request.headers['content-type'] !== 'application/json') throw new Error('not OTLP as JSON')
        const sent: unknown = JSON.parse(body)
        if (request.url === '/v1/traces') spans.push(...readSpans(sent))
        else if (request.url === '/v1/metrics') points.push(...readPoints(sent))
        else throw new Error(`nothing at ${request.url}`)
        response.setHeader('content-type', 'application/json').end('{}')
      })
      .catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    points,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part as string
  return text
}

function readSpans(sent: unknown): CollectedSpan[] {
  const { resourceSpans } = sent as { resourceSpans: Array<{ scopeSpans: Array<{ scope: { name: string }; spans: WireSpan[] }> }> }
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(readSpan)))
}

function readSpan(span: WireSpan): CollectedSpan {
  const start = BigInt(span.startTimeUnixNano)
  const end = BigInt(span.endTimeUnixNano)
  if (!/^[0-9a-f]{32}$/.test(span.traceId) || !/^[0-9a-f]{16}$/.test(span.spanId)) throw new Error(`ids of '${span.name}'`)
  if (span.parentSpanId !== undefined && !/^[0-9a-f]{16}$/.test(span.parentSpanId)) throw new Error(`parent of '${span.name}'`)
  if (end < start || span.name === '' || span.kind < 1 || span.kind > 5) throw new Error(`'${span.name}' is no span`)
  const events = span.events.map(({ name, timeUnixNano, attributes }) => ({ name, time: BigInt(timeUnixNano), attributes: read(attributes) }))
  if (events.some(({ time }) => time < start || time > end)) throw new Error(`an event of '${span.name}' is not in its time`)
  const links = span.links.map((link) => ({ ...link, attributes: read(link.attributes) }))
  return { ...span, start, end, attributes: read(span.attributes), events, links }
}

function readPoints(sent: unknown): CollectedPoint[] {
  const { resourceMetrics } = sent as {
    resourceMetrics: Array<{ scopeMetrics: Array<{ metrics: Array<{ name: string; unit: string; gauge: { dataPoints: Array<{ asDouble: number; attributes: KeyValue[] }> } }> }> }>
  }
  return resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) => metrics.flatMap(({ name, unit, gauge }) => gauge.dataPoints.map(({ asDouble, attributes }) => ({ metric: name, unit, value: asDouble, attributes: read(attributes) })))))
}

function read(attributes: readonly KeyValue[]): Record<string, Value> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf({ stringValue, intValue, doubleValue, boolValue, arrayValue }: AnyValue): Value {
  const value = stringValue ?? doubleValue ?? boolValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? arrayValue?.values.map(valueOf)
  if (value === undefined) throw new Error('an attribute has no value')
  return value
}
