import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * A server of the Model Context Protocol as a process of its own: `node server.ts` speaks JSON-RPC over its standard input and output, one
 * message a line; `node server.ts http` over HTTP, and says its address first.
 */
interface Message {
  id?: number | string
  method?: string
  params?: { protocolVersion?: string; name?: string; arguments?: Record<string, unknown> }
}

/** A red pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

const object = (properties: Record<string, unknown>, required: string[] = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false })
const tools = [
  { name: 'weather', description: 'The weather in a city.', inputSchema: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...object({ city: { type: 'string' } }) }, outputSchema: object({ city: { type: 'string' }, celsius: { type: 'number' } }) },
  { name: 'picture', description: 'A picture of a city.', inputSchema: object({ city: { type: 'string' } }) },
  { name: 'book', description: 'Books a hotel.', inputSchema: object({ nights: { type: 'integer' } }) },
  { name: 'vanish', description: 'Is not there when it is called.', inputSchema: object({}) },
  { name: 'forever', description: 'Never answers.', inputSchema: object({}) },
]

function answer({ method, params }: Message): { result: unknown } | { error: unknown } | undefined {
  switch (method) {
    case 'initialize':
      return { result: { protocolVersion: params?.protocolVersion ?? '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'travel', version: '1.0.0' } } }
    case 'ping':
      return { result: {} }
    case 'tools/list':
      return { result: { tools } }
    case 'tools/call':
      return call(params?.name ?? '', params?.arguments ?? {})
    default:
      return { error: { code: -32601, message: `no method ${method}` } }
  }
}

function call(name: string, input: Record<string, unknown>): { result: unknown } | { error: unknown } | undefined {
  const text = (words: string) => ({ type: 'text', text: words })
  switch (name) {
    case 'weather': {
      const structuredContent = { city: input.city, celsius: 9 }
      return { result: { content: [text(JSON.stringify(structuredContent))], structuredContent } }
    }
    case 'picture':
      return { result: { content: [text(`This is ${String(input.city)}.`), { type: 'image', data: pixel, mimeType: 'image/png' }] } }
    case 'book':
      return { result: { content: [text('Fully booked.')], isError: true } }
    case 'vanish':
      return { error: { code: -32602, message: 'Unknown tool: vanish' } }
    default:
      return undefined
  }
}

function reply(message: Message): object | undefined {
  if (message.id === undefined) return undefined
  const said = answer(message)
  return said && { jsonrpc: '2.0', id: message.id, ...said }
}

if (process.argv[2] === 'http') {
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    void bodyOf(request).then((body) => {
      const said = reply(JSON.parse(body) as Message)
      if (said) response.setHeader('content-type', 'application/json').end(JSON.stringify(said))
      else if ((JSON.parse(body) as Message).id === undefined) response.writeHead(202).end()
    })
  })
  server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp\n`))
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    const said = reply(JSON.parse(line) as Message)
    if (said) process.stdout.write(`${JSON.stringify(said)}\n`)
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part as string
  return text
}
